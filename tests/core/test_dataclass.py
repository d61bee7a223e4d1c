"""The frozen dataclasses with shared methods behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from suture.core.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """A parcel."""

    city: str
    weight_kg: float = 1.0
    stamps: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, hash=False)
    secret: str = field(default="", repr=False, compare=False)
    log: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.log.append(self.city)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StandardParcel:
    """The same parcel, made by the standard library."""

    city: str
    weight_kg: float = 1.0
    stamps: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, hash=False)
    secret: str = field(default="", repr=False, compare=False)
    log: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.log.append(self.city)


@dataclass(frozen=True, kw_only=True)
class FragileParcel(Parcel):
    """A parcel with a field more, which only its own class compares."""

    layers: int = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """A class whose instances are compared by identity."""

    name: str


def test_two_instances_share_no_default_list() -> None:
    first, second = Parcel(city="Oslo"), Parcel(city="Oslo")
    first.notes.append("wet")
    assert (second.notes, second.log, second.weight_kg) == ([], ["Oslo"], 1.0)


def test_text_equality_and_hash_are_those_of_the_standard_library() -> None:
    values: dict[str, Any] = {"city": "Oslo", "stamps": ("a", "b"), "secret": "x"}
    shared, standard = Parcel(**values), StandardParcel(**values)
    assert repr(shared) == repr(standard).replace("StandardParcel", "Parcel")
    assert hash(shared) == hash(standard)
    assert list(vars(shared)) == list(vars(standard))
    assert shared == Parcel(**values | {"secret": "y"})
    assert shared != Parcel(**values | {"notes": ["wet"]})
    assert shared != standard


def test_a_subclass_has_the_fields_of_both_classes_and_equals_no_instance_of_the_other() -> None:
    parcel = FragileParcel(city="Oslo", layers=3)
    assert replace(parcel, city="Bergen") == FragileParcel(city="Bergen", layers=3)
    assert FragileParcel(city="Oslo") != Parcel(city="Oslo")


def test_without_eq_instances_are_compared_by_identity() -> None:
    place = Place(name="here")
    assert place == place  # noqa: PLR0124 - identity is what is tested
    assert place != Place(name="here")
    assert len({place, Place(name="here")}) == 2


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_and_pickles_are_equal(duplicate: Callable[[Parcel], Parcel]) -> None:
    parcel = Parcel(city="Oslo", notes=["wet"])
    assert duplicate(parcel) == parcel


def test_a_field_cannot_be_assigned_or_deleted() -> None:
    parcel = Parcel(city="Oslo")
    with pytest.raises(FrozenInstanceError, match="'city'"):
        setattr(parcel, "city", "Rome")  # noqa: B010 - a type checker would refuse the assignment
    with pytest.raises(FrozenInstanceError, match="'city'"):
        delattr(parcel, "city")


@pytest.mark.parametrize(
    ("values", "named"),
    [({}, "'city'"), ({"city": "Oslo", "colour": "red"}, "'colour'"), ({"city": "Oslo", "log": []}, "'log'")],
)
def test_missing_and_unknown_arguments_are_named(values: dict[str, Any], named: str) -> None:
    for cls in (Parcel, StandardParcel):
        with pytest.raises(TypeError, match=named):
            cls(**values)
