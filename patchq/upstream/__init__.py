"""Bases: how an upstream tree gets from where it is published into the store, and is proven to be the right one."""
