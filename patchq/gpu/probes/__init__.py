"""Scripts that compile kernels for a target, run by an interpreter that has the compiler; none of them needs a card."""
