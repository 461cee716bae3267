"""Proof for a card, with and without the card: compiling for it, its code path on another one, and runs carried to where one is."""
