"""The kinds of trouble that patchq must survive, and the tests that are the cases of each.

A case is named by its file under tests/ and its function; behind a blank, a part of its parameters' names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LANDING = "scenarios/test_landing.py::"
HISTORY = "scenarios/test_history.py::"
MOVING = "scenarios/test_moving.py::"
KINDS_OF_REBASE = "scenarios/test_rebase_kinds.py::"
REBASE = "scenarios/test_rebase.py::"
CONTENTS = "scenarios/test_contents.py::test_there_already_elsewhere_or_otherwise"
PICK = "git/test_pick.py::"
CONTENT = f"{PICK}test_kinds_of_content"
BACK = f"{PICK}test_taking_a_patch_back_is_its_reverse"
MAIL = "git/test_mail.py::"
DIFF = "git/test_diff.py::"
CHECKOUT = "scenarios/test_checkout.py::"
HARD = "scenarios/test_hard_places.py::"
KILLED = "scenarios/test_interruption.py::"
ARCHIVE = "upstream/test_archive.py::"
INDEX = "upstream/test_index.py::"
FETCH = "upstream/test_fetch.py::"
LOCK = "series/test_lock.py::"
SERIES = "series/test_series.py::"
YAML = "series/test_yamlfile.py::"
PROVE = "testing/test_prove.py::"


def _content(*names: str) -> tuple[str, ...]:
    return tuple(f"{test} {name}" for name in names for test in (CONTENT, BACK))


KINDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Landing upstream": {
        "landed as is": (
            f"{LANDING}test_landed_as_is",
            f"{LANDING}test_landed_with_other_tests",
            f"{HISTORY}test_the_commit_that_landed_it",
            f"{REBASE}test_landed_and_reworked_leave_with_a_record",
        ),
        "squashed with another": (
            f"{LANDING}test_squashed_with_another_change",
            f"{HISTORY}test_a_squash_is_found_though_its_patch_is_another",
        ),
        "landed then reverted": (
            f"{LANDING}test_landed_then_reverted",
            f"{HISTORY}test_landed_then_reverted",
            f"{REBASE}test_landed_then_reverted_is_applied_again",
        ),
        "landed then reworked on the same lines": (
            f"{LANDING}test_landed_then_reworked_on_the_same_lines",
            f"{HISTORY}test_landed_then_reworked",
        ),
        "half landed": (
            f"{LANDING}test_half_landed",
            f"{REBASE}test_half_landed_keeps_what_is_left",
        ),
        "merged on main but not in the pinned tag": (
            f"{LANDING}test_merged_on_main_but_not_in_the_pinned_tag",
        ),
        "same guard landed a few lines away": (
            f"{LANDING}test_same_guard_landed_a_few_lines_away",
            f"{REBASE}test_a_guard_that_landed_a_few_lines_away_is_not_put_twice",
            f"{KINDS_OF_REBASE}test_a_merge_that_does_a_thing_twice_is_caught_by_the_patchs_tests",
            "scenarios/test_three_way.py::test_what_the_checkout_has_already_is_not_put_twice",
        ),
    },
    "Upstream moved": {
        "file renamed": (
            f"{MOVING}test_file_renamed",
            f"{REBASE}test_renames_are_followed_into_the_lane",
        ),
        "module became a package": (
            f"{MOVING}test_module_became_a_package",
            f"{MOVING}test_module_became_a_package_and_landed_there",
            "vllm/test_forecast.py::test_the_module_that_became_a_package_is_followed",
        ),
        "file deleted": (
            f"{MOVING}test_file_deleted",
            f"{REBASE}test_missing_file_is_resolved_with_git",
        ),
        "both sides added one path": (
            f"{MOVING}test_both_sides_add_one_path",
            f"{MOVING}test_a_file_on_one_side_and_a_directory_on_the_other",
            f"{KINDS_OF_REBASE}test_both_sides_add_one_path",
        ),
        "target function deleted while an identical block remains": (
            f"{MOVING}test_target_function_deleted_while_a_twin_remains",
            f"{MOVING}test_target_method_deleted_while_a_twin_in_the_same_class_remains",
            f"{PICK}test_an_identical_block_in_another_function_is_never_taken",
            f"{PICK}test_the_next_identical_block_is_never_taken",
        ),
    },
    "Content": {
        "binary add/change/delete": (
            *_content("binary added", "binary changed", "binary deleted", "binary to text"),
            *(f"{CONTENTS} binary {what}" for what in ("added", "changed", "deleted")),
        ),
        "mode-only change": (*_content("mode alone"), "scenarios/test_contents.py::test_modes_and_links"),
        "symlink": (
            *_content("symlink added", "symlink changed", "symlink deleted"),
            *_content("file becomes symlink", "symlink becomes file"),
        ),
        "new executable": _content("new executable"),
        "CRLF": (*_content("crlf"), f"{CONTENTS} CRLF"),
        "mixed endings": _content("mixed endings"),
        "no final newline": (*_content("no final newline", "final newline"), f"{CONTENTS} no final newline"),
        "Latin-1 and NBSP": (*_content("latin-1 and nbsp"), f"{CONTENTS} Latin-1"),
        "paths with space, quote, tab, non-ASCII, with core.quotepath both ways": (
            *_content("paths"),
            f"{CONTENTS} odd path",
            f"{DIFF}test_paths_are_read_as_git_writes_them",
            f"{DIFF}test_renames_and_copies_of_other_peoples_patches",
        ),
        "empty file created and deleted": (
            *_content("empty file added", "empty file deleted"),
            f"{CONTENTS} empty file added",
            f"{MOVING}test_empty_files_are_not_taken_for_one_another",
        ),
        "empty patch, and one become empty": (
            "engine/test_record.py::test_an_empty_commit",
            f"{MAIL}test_an_empty_diff_is_not_written",
            f"{REBASE}test_a_resolution_that_leaves_nothing_leaves_the_lane",
            "scenarios/test_refresh.py::test_nothing_left_of_a_patch_is_refused",
        ),
    },
    "Patch text": {
        "body with `---`, `diff --git`, `From abc`": (
            f"{MAIL}test_bodies_survive",
            f"{MAIL}test_messages_that_git_am_would_mangle_are_refused",
            "engine/test_record.py::test_a_message_that_git_am_would_cut",
        ),
        "`[Tag][Tag] subject`": (f"{MAIL}test_titles_survive",),
        "wrong hunk counts": (f"{DIFF}test_what_git_would_not_write_is_refused_with_its_line",),
        "padded header": (f"{MAIL}test_other_peoples_mails_are_read_as_git_am_reads_them padded",),
        "truncated file": (
            f"{DIFF}test_every_truncation_is_refused_or_harmless",
            f"{PICK}test_a_truncated_body_is_refused_where_git_accepts_it",
        ),
        "needs fuzz (refused, hunk named)": (f"{PICK}test_fuzz_is_refused_and_the_hunk_named",),
        "lands at an offset (reported)": (
            f"{PICK}test_an_offset_is_reported_by_hunk",
            f"{MOVING}test_offset",
        ),
        "BOM": (f"{MAIL}test_what_is_no_patch_is_refused_at_its_line 0",),
        "HTML saved as .patch": (
            f"{MAIL}test_what_is_no_patch_is_refused_at_its_line 1",
            "scenarios/test_import.py::test_files_that_are_no_patches",
        ),
        "a date that git am refuses": (f"{MAIL}test_dates_that_git_am_refuses",),
    },
    "Checkout": {
        "dirty tracked file": (
            f"{CHECKOUT}test_dirty_touched_file",
            f"{CHECKOUT}test_staged_touched_file",
            f"{CHECKOUT}test_dirty_and_staged_files_elsewhere_stay",
            f"{CHECKOUT}test_an_edit_that_git_does_not_see",
        ),
        "untracked or ignored file in the way": (f"{CHECKOUT}test_file_in_the_way",),
        "a directory where a file goes": (
            f"{CHECKOUT}test_directory_where_a_file_goes",
            f"{CHECKOUT}test_file_where_a_directory_goes",
            f"{CHECKOUT}test_symlink_where_a_directory_goes",
        ),
        "detached HEAD": (f"{CHECKOUT}test_detached_head",),
        "mid-rebase": (f"{CHECKOUT}test_mid_rebase", f"{HARD}test_in_the_middle_of_the_users_own_rebase"),
        "linked worktree": (f"{CHECKOUT}test_linked_worktree",),
        "sparse checkout": (f"{CHECKOUT}test_sparse_checkout",),
        "blobless clone lacking a preimage": (f"{CHECKOUT}test_blobless_clone_lacking_a_preimage",),
        "submodule with submodule.recurse": (f"{CHECKOUT}test_submodule_with_recurse",),
        "inside another repository": (f"{CHECKOUT}test_inside_another_repository",),
        "read-only": (f"{HARD}test_a_read_only_checkout", f"{HARD}test_a_read_only_directory_of_it"),
        "no space left": (
            f"{HARD}test_a_full_disk",
            f"{KILLED}test_no_space_left_at_every_write",
            "scenarios/test_editing_killed.py::test_no_space_left",
        ),
        "a case-clashing name": (f"{CHECKOUT}test_case_clash_where_the_file_system_folds_case",),
        "user config hostile to plumbing": (
            f"{CHECKOUT}test_hostile_user_configuration",
            f"{CHECKOUT}test_line_endings_as_the_user_has_them",
            f"{CHECKOUT}test_filters_of_the_users_are_never_run",
            "engine/test_record.py::test_settings_and_attributes_change_no_byte",
        ),
        "a file's mode changed behind git's back": (
            "engine/test_verify.py::test_a_mode_behind_gits_back_is_seen",
            f"{HARD}test_verify_and_modes",
        ),
    },
    "Interruption": {
        "SIGKILL at every step of apply": (
            f"{KILLED}test_apply_killed_at_every_write",
            f"{KILLED}test_create_killed_at_every_write",
            f"{KILLED}test_a_file_edited_between_kill_and_recovery_is_not_overwritten",
            f"{KILLED}test_head_moved_by_the_user_between_kill_and_recovery",
        ),
        "SIGKILL at every step of unapply": (f"{KILLED}test_unapply_killed_at_every_write",),
        "SIGKILL at every step of refresh and of edits": (
            f"{KILLED}test_refresh_killed_at_every_write",
            "scenarios/test_editing_killed.py::test_refresh_and_its_checkout",
            "scenarios/test_editing_killed.py::test_move",
            "scenarios/test_editing_killed.py::test_every_other_edit",
            "scenarios/test_editing_killed.py::test_undo_of_a_refresh",
            "scenarios/test_editing_killed.py::test_a_file_edited_between_kill_and_recovery_is_not_overwritten",
        ),
        "SIGKILL at every step of rebase": (
            "scenarios/test_rebase_killed.py::test_a_whole_rebase",
            "scenarios/test_rebase_killed.py::test_one_that_stops",
            "scenarios/test_rebase_killed.py::test_one_that_goes_on",
        ),
        "SIGKILL at every step of fetch": (
            f"{KILLED}test_fetch_killed_at_every_write",
            f"{FETCH}test_an_import_that_was_killed_leaves_nothing_in_the_store",
        ),
        "Ctrl-C": (
            f"{KILLED}test_ctrl_c",
            f"{KILLED}test_ctrl_c_in_the_middle_of_a_switch",
            f"{KILLED}test_ctrl_c_in_the_middle_of_an_edit",
        ),
        "two patchq at once": (f"{KILLED}test_two_at_once", "scenarios/test_editing.py::test_two_at_once"),
        "a dead lock holder": (
            f"{HARD}test_a_dead_lock_holder_holds_nothing",
            f"{CHECKOUT}test_a_lock_that_a_dead_git_left",
        ),
        "power loss between write and rename": (f"{HARD}test_power_lost_at_every_rename",),
    },
    "Supply": {
        "sdist with a wrong hash": (f"{FETCH}test_a_wrong_hash_in_the_lock", f"{INDEX}test_a_wrong_hash"),
        "truncated download": (
            f"{INDEX}test_a_download_cut_off_goes_on",
            f"{INDEX}test_cut_off_twice",
            f"{FETCH}test_cut_off_midway_then_again",
        ),
        "tar with `../`, absolute, device or link members": (
            f"{ARCHIVE}test_hostile_members",
            f"{ARCHIVE}test_the_first_member_decides_nothing_that_leaves_the_tree",
            f"{FETCH}test_a_hostile_archive_leaves_nothing_behind",
        ),
        "index unreachable": (f"{INDEX}test_an_index_that_is_not_there", f"{FETCH}test_no_network"),
        "upstream.lock edited by hand": (
            f"{LOCK}test_a_hand_at_the_lock_is_told_its_line",
            f"{SERIES}test_a_hash_edited_in_the_lock",
            f"{SERIES}test_the_order_of_the_lock_is_checked",
        ),
        "patch bytes changed under the lock": (
            f"{SERIES}test_patch_bytes_changed_under_the_lock",
            f"{SERIES}test_one_more_byte_is_a_change",
        ),
        "missing or unlisted patch directory": (
            f"{SERIES}test_a_missing_directory",
            f"{SERIES}test_an_unlisted_directory",
        ),
        "duplicate id": (f"{SERIES}test_a_duplicate_id",),
        "a cycle in depends": (f"{SERIES}test_depends_that_cannot_be",),
        "unknown key or wrong type in YAML, at file:line": (
            f"{YAML}test_mistakes_are_named_with_their_line",
            "series/test_patch.py::test_a_wrong_value_is_told_at_its_line",
        ),
        "a YAML bomb": (f"{YAML}test_a_bomb_is_refused_before_it_grows",),
        "a source url that runs a program": (
            f"{FETCH}test_a_program_as_a_url",
            f"{FETCH}test_a_bare_ipv6_address_is_a_url",
        ),
    },
    "Conflict mid-series": {
        "the checkout is untouched until it is resolved": (
            f"{REBASE}test_a_conflict_stops_with_a_work_tree_and_names_the_sides",
            "scenarios/test_three_way.py::test_a_conflict_changes_nothing",
        ),
        "continue works": (
            f"{REBASE}test_continue_carries_the_resolution",
            f"{REBASE}test_a_resolution_is_used_again_on_the_next_base",
        ),
        "skip works": (
            f"{REBASE}test_skip_leaves_it_out",
            f"{REBASE}test_a_skip_holds_until_the_patch_changes_or_a_person_wants_to_be_asked",
        ),
        "abort works": (f"{REBASE}test_abort_leaves_everything_as_it_was",),
        "nothing is emptied or reordered": (
            f"{REBASE}test_authors_dates_order_and_titles_survive",
            f"{REBASE}test_edits_survive_another_look",
        ),
        "authorship survives": (
            f"{REBASE}test_the_author_survives_a_conflict",
            f"{MAIL}test_authors_survive",
        ),
    },
    "Tests": {
        "tests that do not exist": (
            f"{PROVE}test_missing",
            f"{PROVE}test_none",
            f"{PROVE}test_missing_node_id",
        ),
        "collect nothing": (f"{PROVE}test_empty",),
        "are all skipped": (f"{PROVE}test_all_skipped", f"{PROVE}test_a_module_that_skips_itself"),
        "hang": (f"{PROVE}test_hang",),
        "crash the interpreter": (
            f"{PROVE}test_crash",
            f"{PROVE}test_leaving_without_a_word",
            f"{PROVE}test_out_of_memory",
        ),
        "write outside their tree": (
            f"{PROVE}test_writing_into_its_tree",
            f"{PROVE}test_writing_into_its_tree_where_the_kernel_lets_it",
            "testing/test_isolation.py::test_a_fresh_home_and_fresh_caches_each_time",
        ),
        "pass before the patch": (f"{PROVE}test_useless",),
    },
}


def is_case(case: str, node: str) -> bool:
    """Whether a test (its id in pytest, from the project's top) is one that a case names."""
    name, _, parameters = case.partition(" ")
    function, bracket, given = node.removeprefix("tests/").partition("[")
    return function == name and (not parameters or (bool(bracket) and parameters in given))


def table(outcomes: Mapping[str, str]) -> tuple[str, list[str]]:
    """A table in Markdown, one row a kind: how many cases it has and how many passed; and the kinds without either.

    Args:
        outcomes: of each test that was chosen: passed, failed, skipped.
    """
    rows = ["| kind | | cases | passed |", "| --- | --- | ---: | ---: |"]
    wanting = []
    for group, kinds in KINDS.items():
        for kind, cases in kinds.items():
            found = [outcomes[n] for n in outcomes if any(is_case(c, n) for c in cases)]
            passed = found.count("passed")
            others = ", ".join(f"{found.count(o)} {o}" for o in sorted(set(found) - {"passed"}))
            if not passed or set(found) & {"failed", "not run"}:
                wanting.append(f"{group}: {kind}")
            rows.append(f"| {group} | {kind} | {len(found)} | {passed}{f' ({others})' if others else ''} |")
    return "\n".join(rows), wanting


def files(kinds: Iterable[Mapping[str, tuple[str, ...]]] = KINDS.values()) -> list[str]:
    """The test files that hold cases."""
    return sorted({f"tests/{c.partition('::')[0]}" for k in kinds for cases in k.values() for c in cases})
