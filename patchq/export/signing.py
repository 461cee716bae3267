"""Who answers for a commit: the exporter's name on what the project wrote, and the sign-offs that upstream asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.errors import InputError
from patchq.git.checkout import user_identity
from patchq.upstream.store import OWNER
from patchq.vllm.pull_request import assistance
from patchq.vllm.rules import sign_off, sign_offs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.engine.stack import Step
    from patchq.git.checkout import Checkout

_TRAILER = re.compile(r"[A-Za-z0-9-]+: \S.*")


@dataclass(frozen=True)
class Person:
    """A name and a mail address that somebody can be reached by."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


def find_exporter(named: str | None, checkout: Checkout) -> Person:
    """Who exports: as named, else as git in that clone would say.

    Raises:
        InputError: nobody is named, or it is not a person with a mail address.
    """
    known = user_identity(checkout)
    text = named if named is not None else f"{known[0]} <{known[1]}>" if known else ""
    if not text:
        raise InputError(
            "nobody is named who signs the commits off, and git in that clone knows no user.",
            'Say who you are: --as "Name <mail>", or git config user.name and user.email.',
        )
    found = re.fullmatch(r"\s*([^<>\n]*[^<>\s])\s*<([^<>@\s]+@[^<>@\s]+)>\s*", text)
    if found is None or str(Person(found[1], found[2])) == OWNER:
        raise InputError(
            f"{text!r} is nobody who can sign a commit off.", 'Name a person: --as "Name <mail>".'
        )
    return Person(found[1].strip(), found[2])


def sign(step: Step, who: Person, helpers: Sequence[str]) -> Step:
    """A patch as it goes upstream: the exporter answers for it; who wrote it and signed it off stays its author.

    One who wrote it and did not sign it off cannot be its author upstream, and is named as a co-author.

    Args:
        step: the patch in its stack.
        who: the exporter.
        helpers: AI tools that had a part in it.
    """
    text, trailers = split_trailers(step.message)
    author, credit = step.author, []
    wrote = f"{author.name} <{author.email}>"
    if wrote != str(who) and wrote not in sign_offs(step.message):
        credit = [f"Co-authored-by: {wrote}"]
    if credit or wrote == OWNER:
        author = author._replace(name=who.name, email=who.email)
    if wrote == OWNER:
        credit = []
    own = sign_off(who.name, who.email)
    placeholder = sign_off(*OWNER.removesuffix(">").split(" <"))
    kept = [line for line in trailers if line not in {own, placeholder}]
    kept += [line for line in (*credit, *map(assistance, helpers)) if line not in kept]
    return step._replace(author=author, message="\n".join([text, "", *kept, own]) + "\n")


def split_trailers(message: str) -> tuple[str, list[str]]:
    """A message without its trailers, and them."""
    paragraphs = message.strip("\n").split("\n\n")
    last = paragraphs[-1].split("\n")
    if len(paragraphs) > 1 and all(_TRAILER.fullmatch(line) for line in last):
        return "\n\n".join(paragraphs[:-1]), last
    return "\n\n".join(paragraphs), []
