"""Roles, groups and the policy's section about them."""

from __future__ import annotations

import pytest

from hami_web.access.policy import InvalidAccessPolicy, parse_access_policy
from hami_web.access.roles import LEAST_ROLES, Role, Verb


def test_each_role_may_all_that_the_one_before_may() -> None:
    allowed = [{verb for verb in Verb if role.may(verb)} for role in Role]
    assert allowed[0] < allowed[1] < allowed[2] == set(Verb)


def test_the_table_names_every_verb() -> None:
    assert set(LEAST_ROLES) == set(Verb)


def test_reading_needs_a_viewer_writing_an_operator_the_audit_log_an_admin() -> None:
    assert LEAST_ROLES[Verb.READ] is Role.VIEWER
    assert LEAST_ROLES[Verb.CORDON] is Role.OPERATOR
    assert LEAST_ROLES[Verb.READ_AUDIT] is Role.ADMIN


def test_the_highest_role_of_all_groups_counts() -> None:
    policy = parse_access_policy(
        {"roleGroups": {"viewer": ["*"], "admin": ["ops"], "operator": ["gpu", "ops"]}}
    )
    assert policy.role_of(["gpu", "ops"]) is Role.ADMIN
    assert policy.role_of(["gpu"]) is Role.OPERATOR
    assert policy.role_of([]) is Role.VIEWER


def test_without_policy_no_group_gives_a_role_and_viewers_see_no_namespace() -> None:
    policy = parse_access_policy({})
    assert policy.role_of(["anything"]) is None
    assert policy.namespaces == {
        Role.VIEWER: frozenset(),
        Role.OPERATOR: None,
        Role.ADMIN: None,
    }


def test_a_star_stands_for_every_namespace() -> None:
    policy = parse_access_policy({"namespaces": {"viewer": ["*"], "operator": ["a"]}})
    assert policy.namespaces[Role.VIEWER] is None
    assert policy.namespaces[Role.OPERATOR] == {"a"}


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "access"),
        ({"roles": {}}, "access.roles"),
        ({"roleGroups": []}, "access.roleGroups"),
        ({"roleGroups": {"root": []}}, "access.roleGroups.root"),
        ({"namespaces": {"viewer": "a"}}, "access.namespaces.viewer"),
        ({"namespaces": {"viewer": [1]}}, "access.namespaces.viewer"),
    ],
)
def test_a_section_without_sense_is_refused_by_field(document: object, named: str) -> None:
    with pytest.raises(InvalidAccessPolicy, match=named):
        parse_access_policy(document)
