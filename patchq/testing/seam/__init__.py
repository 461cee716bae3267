"""Whether a patch's calls fit what they call."""
