"""stub"""

from __future__ import annotations


def check_seams(objects, without, after, production):
    return ()
