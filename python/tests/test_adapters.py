"""The made-up tables of three hospitals' data sets: every label and every reason, as the tests of the program expect them."""

from pathlib import Path

import pytest

import fairtte.data

pd = pytest.importorskip("pandas")

FIXTURES = Path(__file__).parents[2] / "fairtte-data" / "tests" / "fixtures"
pytestmark = pytest.mark.skipif(not FIXTURES.exists(), reason="the tables of the repository are not here")


def expected(name, sample, time):
    found = pd.read_csv(FIXTURES / name / f"expected_{name}.csv", dtype=str, keep_default_na=False)
    return found.assign(sample_id=sample(found), time=found[time])


def compare(cohort, wanted, groups):
    """Every kept row has the label of the table and every other one its reason; a level stands for one code."""
    kept, left_out = wanted[wanted["keep"] == "1"], wanted[wanted["keep"] == "0"]
    frame = cohort.to_pandas().set_index("sample_id")
    assert cohort.n == len(kept) and cohort.n_read == len(wanted) and frame.index.is_unique
    frame = frame.loc[kept["sample_id"]]
    assert frame["time"].to_numpy() == pytest.approx(kept["time"].astype(float).to_numpy(), abs=1e-9)
    assert list(frame["event"]) == [event == "1" for event in kept["event"]]
    ages = pd.to_numeric(kept["age"], errors="coerce")
    assert list(frame["age"].astype(float)) == pytest.approx(list(ages), nan_ok=True)
    reasons = sorted(zip(cohort.exclusions["sample_id"], cohort.exclusions["reason"], strict=True))
    assert reasons == sorted(zip(left_out["sample_id"], left_out["reason"], strict=True))
    flow = cohort.flow()
    assert flow["kept"].iloc[-1] == len(kept) and flow["excluded"].sum() == len(left_out)
    levels = cohort.groups().set_index(pd.Index(cohort.to_pandas()["sample_id"])).loc[kept["sample_id"]]
    for column, attribute in groups.items():
        known = [(code, level) for code, level in zip(kept[column], levels[attribute], strict=True) if code]
        assert len(set(known)) == len({code for code, _ in known}) == len({level for _, level in known}) > 1, attribute
        unknown = [level for code, level in zip(kept[column], levels[attribute], strict=True) if not code]
        assert all(pd.isna(level) for level in unknown)


def test_mimic_cxr():
    def sample(rows):
        return "aaaaaaaa-00000000-00000000-00000000-000000" + rows["dicom"]

    wanted = expected("mimic", sample, "tte")
    cohort = fairtte.data.mimic_cxr(FIXTURES / "mimic")
    assert cohort.time_unit == "days" and cohort.attributes == ["age", "sex", "race"]
    compare(cohort, wanted, {"age_grp": "age", "sex": "sex", "white": "race"})
    # With the option that keeps every death, one image is after the last discharge.
    wanted.loc[wanted["dicom"] == "12", ["keep", "reason"]] = ["0", "after_last_discharge"]
    compare(fairtte.data.mimic_cxr(FIXTURES / "mimic", after_discharge="all"), wanted, {"sex": "sex"})


def test_adni():
    wanted = expected("adni", lambda rows: rows["image"], "tte6")
    cohort = fairtte.data.adni(FIXTURES / "adni")
    compare(cohort, wanted, {"age_grp": "age", "sex": "sex"})
    last = wanted["image"].isin(["I900005", "I900010", "I900013", "I900018"])
    wanted.loc[last, ["keep", "reason"]] = ["0", "final_visit"]
    literal = fairtte.data.adni(FIXTURES / "adni", final_visit="literal")
    compare(literal, wanted, {"sex": "sex"})
    assert literal.content_hash != cohort.content_hash


def test_areds():
    wanted = expected("areds", lambda rows: rows["path"], "tte_y")
    cohort = fairtte.data.areds(FIXTURES / "areds", stereo="one")
    compare(cohort, wanted, {"age_grp": "age", "sex": "sex", "white": "race"})
    # A person is followed by eye.
    assert "unit" in cohort.to_pandas() and cohort.n_subjects < cohort.to_pandas()["unit"].nunique()
    with pytest.raises(fairtte.DataError, match='stereo is "left", expected "both" or "one"'):
        fairtte.data.areds(FIXTURES / "areds", stereo="left")
