"""All deciding, in memory on git objects: stacks, where a checkout stands, and how it is switched."""
