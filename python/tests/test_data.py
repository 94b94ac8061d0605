"""Cohorts, splits and stores of images."""

import pickle

import numpy as np
import pytest

import fairtte
import fairtte.data

pd = pytest.importorskip("pandas")


def write_table(folder, n=40):
    rng = np.random.default_rng(2)
    rows = [
        f"{k}.png,p{k // 2},{1 + k},{k % 3 > 0:d},{'FM'[k // 2 % 2]},{50 + k}" for k in range(n)
    ]
    rows += [f"{n}.png,p{n},,1,F,60", f"{n + 1}.png,,3,1,F,60"]
    path = folder / "cohort.csv"
    path.write_text("\n".join(["image,person,time,event,sex,age", *rows]))
    return path, rng


def cohort(folder, **options):
    path, _ = write_table(folder)
    attributes = ["sex", {"name": "age", "threshold": 60}]
    return fairtte.data.table(path, subject="person", attributes=attributes, time_unit="months", **options)


def test_a_table_becomes_a_cohort_with_every_row_accounted_for(tmp_path):
    found = cohort(tmp_path)
    assert (found.n, found.n_events, found.n_subjects, found.n_read) == (40, 26, 20, 42)
    frame = found.to_pandas()
    assert list(frame.columns) == ["sample_id", "subject_id", "sex", "age", "time", "event", "source_row"]
    assert list(frame["time"][:3]) == [1.0, 2.0, 3.0] and list(frame["event"][:3]) == [False, True, True]
    assert list(frame["subject_id"][:3]) == ["p0", "p0", "p1"] and list(frame["source_row"][:2]) == [2, 3]
    assert np.array_equal(found.time, frame["time"]) and np.array_equal(found.event, frame["event"])
    assert set(found.exclusions["reason"]) == {"missing_time", "missing_subject"}
    flow = found.flow()
    assert flow["kept"].iloc[0] == 42 and flow["kept"].iloc[-1] == 40 and flow["excluded"].sum() == 2
    groups = found.groups()
    assert list(groups["sex"][:3]) == ["F", "F", "M"]
    # 50 to 60 years of the persons 0 to 10, and what is above.
    assert (groups["age"] == groups["age"][0]).to_list() == [True] * 11 + [False] * 29
    pl = pytest.importorskip("polars")
    assert isinstance(found.to_polars(), pl.DataFrame) and found.to_polars()["time"].to_list() == list(found.time)
    assert found.select(np.arange(40) < 4).n == 4 and found.select([3, 1]).to_pandas()["time"].tolist() == [4.0, 2.0]


def test_the_hash_is_that_of_the_content(tmp_path):
    first = cohort(tmp_path, sample="image")
    assert len(first.content_hash) == 64 and first.provenance["adapter"] == "tabular"
    path = tmp_path / "cohort.csv"
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *rows[::-1]]))
    attributes = ["sex", {"name": "age", "threshold": 60}]
    read = {"subject": "person", "sample": "image", "attributes": attributes, "time_unit": "months"}
    assert fairtte.data.table(path, **read).content_hash == first.content_hash
    path.write_text("\n".join([head, *rows]).replace("p0,1,0", "p0,1,1"))
    assert fairtte.data.table(path, **read).content_hash != first.content_hash


def test_no_person_is_in_two_parts(tmp_path):
    found = cohort(tmp_path)
    split = found.split(7, stratify=["event", "sex"])
    subject = found.to_pandas()["subject_id"].to_numpy()
    parts = [set(subject[rows]) for rows in (split.train, split.validation, split.test)]
    assert sum(map(len, parts)) == 20 == len(set.union(*parts))
    assert sorted([*split.train, *split.validation, *split.test]) == list(range(40))
    assert "stratified by event, sex" in split.record["method"] and split.record["seed"] == 7
    assert np.array_equal(split.part, found.split(7, stratify=["event", "sex"]).part)
    assert not np.array_equal(split.part, found.split(8, stratify=["event", "sex"]).part)
    assert not np.array_equal(found.split(7).part, found.split(7, repeat=1).part)
    # Every sample is in the test part of exactly one fold.
    folds = [found.split(7, folds=4, fold=fold).test for fold in range(4)]
    assert sorted(np.concatenate(folds)) == list(range(40))
    site = found.split(7, leave_site_out=("sex", "F"))
    assert set(found.to_pandas()["sex"][site.test]) == {"F"} and "F" not in set(found.to_pandas()["sex"][site.train])
    assert len(found.split(7, fractions=(0.8, 0.1, 0.1)).train) == 32
    own = tmp_path / "parts.csv"
    own.write_text("subject_id,part\n" + "\n".join(f"p{k},{('train', 'val', 'test')[k % 3]}" for k in range(20)))
    assert list(found.split(file=own).part[:6]) == ["train", "train", "validation", "validation", "test", "test"]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda folder: fairtte.data.table(folder / "none.csv"), "none.csv"),
        (lambda folder: cohort(folder, time="tme"), "tme"),
        (lambda folder: cohort(folder, image_root=folder), "image_root is given without image"),
        (lambda folder: fairtte.data.table(write_table(folder)[0], attributes=["sx"]), "sx"),
        (lambda folder: fairtte.data.table(write_table(folder)[0], attributes=[3]), "an attribute is 3"),
        (lambda folder: fairtte.data.table(write_table(folder)[0], attributes=[{"name": "age", "cut": 3}]), "cut"),
        (lambda folder: fairtte.data.table(folder / "a.csv", attributes=[{"name": "age", "threshold": object()}]), "threshold is a object"),
        (lambda folder: fairtte.data.table(folder / "a.csv", attributes=[{"name": "age", "threshold": np.nan}]), "threshold is nan, expected"),
        (lambda folder: fairtte.data.mimic_cxr(folder, deth="dod"), "deth"),
        (lambda folder: fairtte.data.mimic_cxr(folder), "mimic|tables|root|file"),
        (lambda folder: fairtte.data.adni(folder), "adni|ADNI|root|file|table"),
        (lambda folder: fairtte.data.areds(folder), "areds|AREDS|root|file|table"),
        (lambda folder: cohort(folder).split(by="sample"), 'by is "sample"'),
        (lambda folder: cohort(folder).split(stratify=["income"]), "income"),
        (lambda folder: cohort(folder).split(folds=1), "fold"),
        (lambda folder: cohort(folder).split(fold=1), "fold is 1 without folds"),
        (lambda folder: cohort(folder).split(fractions=(0.9, 0.2, 0.1)), "train|sum|split"),
        (lambda folder: cohort(folder).select([40]), "row 40 does not exist"),
        (lambda folder: cohort(folder).select([-1]), r"rows\[0\] is -1, which is no row number"),
        (lambda folder: cohort(folder).select([1.5]), r"rows\[0\] is 1.5, which is no row number"),
        (lambda folder: cohort(folder).select(["1"]), r"rows\[0\] is '1', which is no row number"),
        (lambda folder: cohort(folder).select(3), "rows is 3, expected a vector"),
        (lambda folder: cohort(folder).groups(train=[0.0, 2.7]), r"train\[0\] is 0.0, which is no row number"),
        (lambda folder: cohort(folder).groups(train=[0, -2]), r"train\[1\] is -2, which is no row number"),
        (lambda folder: cohort(folder).groups(train=np.ones(3, bool)), "train has 3 values, expected 40, one for each sample"),
        (lambda folder: cohort(folder).split(folds=2.0), "folds is 2.0, expected a whole number"),
        (lambda folder: cohort(folder).split(repeat=-1), "repeat is -1, expected a whole number"),
        (lambda folder: cohort(folder).split(fractions=0.6), "fractions is 0.6, expected three shares"),
        (lambda folder: cohort(folder).split(fractions=("a", 0.2, 0.2)), r"fractions\[0\] is 'a', expected a number"),
        (lambda folder: cohort(folder).split(leave_site_out="sex"), r"leave_site_out is 'sex', expected \(column, site\)"),
        (lambda folder: cohort(folder).images(folder, size=224), r"size is 224, expected \(height, width\) or"),
        (lambda folder: cohort(folder).images(folder, size=(8, 8.5)), r"size\[1\] is 8.5, expected a whole number"),
        (lambda folder: cohort(folder).images(folder, channels="RGB"), "channels is 'RGB', expected a whole number"),
        (lambda folder: cohort(folder).images(folder, limits=3), "limits is 3, expected a dict"),
        (lambda folder: cohort(folder).images(folder), "without images"),
        (lambda folder: cohort(folder).images(folder, exact="yes"), "exact is 'yes', expected True or False"),
        (lambda folder: cohort(folder).groups(library="polar"), "library is 'polar', expected \"pandas\" or \"polars\""),
        (lambda folder: cohort(folder).flow("Pandas"), "library is 'Pandas', expected \"pandas\" or \"polars\""),
        (lambda folder: cohort(folder, time=3), "^time is 3, expected"),
        (lambda folder: cohort(folder, time=3, event=3), "^(time|event) is 3, expected"),
        (lambda folder: fairtte.data.mimic_cxr(folder, death=3), "^death is 3"),
        (lambda folder: fairtte.data.mimic_cxr(folder, deth="dod"), "^deth is no argument, expected one of .*cxr_root"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, read, message):
    with pytest.raises(fairtte.DataError, match=message) as caught:
        read(tmp_path)
    assert isinstance(caught.value, ValueError)


@pytest.fixture
def pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path, rng = write_table(tmp_path)
    # No two pictures are equally bright.
    brightness = 40 + 4 * np.arange(40)[:, None, None]
    pixels = (brightness + rng.integers(-40, 41, size=(40, 16, 24))).astype(np.uint8)
    for k in range(40):
        image.fromarray(pixels[k]).save(tmp_path / f"{k}.png")
    (tmp_path / "5.png").write_bytes(b"no picture")
    attributes = ["sex"]
    return fairtte.data.table(path, image="image", subject="person", attributes=attributes), pixels, tmp_path


def test_images_are_views_of_memory_maps(pictures):
    found, pixels, folder = pictures
    assert found.to_pandas()["image"][0].endswith("0.png")
    store = found.images(folder / "cache", size=(16, 24), images_per_shard=16)
    assert store.shape == (39, 1, 16, 24) and store.dtype == np.uint8 and len(store.arrays) == 3
    assert list(store.excluded["sample_id"]) == ["5.png"]
    rows = store.rows(found.to_pandas()["sample_id"])
    assert rows[5] == -1 and sorted(rows) == [-1, *range(39)]
    for k in range(40):
        if k != 5:
            assert np.array_equal(store[rows[k]][0], pixels[k])
    # Neither an image nor the array of a file owns its memory.
    assert not store[0].flags.owndata and isinstance(store.arrays[0], np.memmap) and not store[0].flags.writeable
    assert np.array_equal(np.asarray(store), np.stack(list(store)))
    with pytest.raises(ValueError, match="3 files"):
        store.__array__(copy=False)
    sent = pickle.loads(pickle.dumps(store))
    assert sent.shape == store.shape and np.array_equal(sent[38], store[38])
    with pytest.raises(IndexError, match="image 39 does not exist"):
        store[39]
    one = found.images(folder / "cache", size=(16, 24), images_per_shard=100)
    assert isinstance(one.array, np.memmap) and one.array.shape == (39, 1, 16, 24)
    assert one.fingerprint() == store.fingerprint() and one.path != store.path
    assert np.shares_memory(np.asarray(one), one.arrays[0])
    colour = found.images(folder / "cache", size=(8, 8), channels=3)
    assert colour.shape == (39, 3, 8, 8) and colour.path not in (one.path, store.path)
    # Three equal channels of one grey picture, half as high and a third as wide.
    assert np.array_equal(colour[0][0], colour[0][1]) and np.array_equal(colour[0][0], colour[0][2])
    for sample, picture in zip(colour.samples, colour, strict=True):
        whole = pixels[int(sample.removesuffix(".png"))]
        assert picture.mean() == pytest.approx(whole.mean(), abs=1.5)
    assert "RGB; resized to 8 x 8" in colour.recipe and "resized to 16 x 24" in one.recipe
    for arguments, message in [({"size": (0, 8)}, "size is"), ({"channels": 2}, "channels is"), ({"limits": {"x": 1}}, "x")]:
        with pytest.raises(fairtte.DataError, match=message):
            found.images(folder / "cache", **arguments)


def test_a_store_of_more_files_than_may_be_open_says_so(pictures):
    resource = pytest.importorskip("resource")
    found, _, folder = pictures
    store = found.images(folder / "cache", size=(16, 24), images_per_shard=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(folder / "cohort.csv") as opened:
        free = opened.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 20, hard))
    try:
        with pytest.raises(fairtte.DataError, match=r"has 39 files, more than this process has left to open, expected fewer \(images_per_shard"):
            pickle.loads(pickle.dumps(store))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert pickle.loads(pickle.dumps(store)).shape == (39, 1, 16, 24)


def test_another_type_is_a_copy(pictures):
    found, _, folder = pictures
    store = found.images(folder / "cache", size=(16, 24), images_per_shard=100)
    assert np.shares_memory(store.__array__(np.dtype(np.uint8), copy=False), store.arrays[0])
    with pytest.raises(ValueError, match="the images are of uint8, which become float32 by a copy alone"):
        store.__array__(np.dtype(np.float32), copy=False)
    assert np.asarray(store, dtype=np.float32).dtype == np.float32


def test_settings_of_images_that_are_of_another_type_are_named(pictures):
    found, _, folder = pictures
    for arguments, message in [({"limits": {"x": 1}}, "^limits is "), ({"volume": {"orient": 3}}, "^volume is ")]:
        with pytest.raises(fairtte.DataError, match=message):
            found.images(folder / "cache", **arguments)


def test_no_rows_are_no_mask(tmp_path):
    found = cohort(tmp_path)
    assert [found.select(rows).n for rows in ([], np.array([], dtype=object), pytest.importorskip("pandas").Series([]), np.array([], dtype=int))] == [0] * 4


def test_images_are_taken_by_row_numbers_that_exist(pictures):
    found, _, folder = pictures
    store = found.images(folder / "cache", size=(16, 24), images_per_shard=np.int64(16), channels=np.int64(1))
    rows = store.rows(found.to_pandas()["sample_id"])
    # The picture 5 cannot be decoded: its -1 is not the last image.
    for index in (rows[5], -1, [0, -1], rows):
        with pytest.raises(IndexError, match=r"image -1 does not exist, expected 0 to below 39; rows\(\) has -1"):
            store[index]
    whole = np.asarray(store)
    kept = rows[rows >= 0]
    mask = np.arange(39) % 3 == 0
    for index in (kept, kept.tolist(), slice(2, 30, 7), slice(-3, None), mask, pd.Series([4, 20]), []):
        by_numpy = np.asarray(index, dtype=np.intp) if isinstance(index, list) else index
        assert np.array_equal(store[index], whole[by_numpy]) and store[index].dtype == np.uint8
    assert store[np.int64(3)].shape == (1, 16, 24) and not np.shares_memory(store[:2], store.arrays[0])
    for index, message in [
        (1.0, "index is 1.0, expected a row number, a slice"),
        ("0.png", "expected a row number"),
        ([0.0, 1.0], "index has 2 values of the type float64, expected a row number"),
        (mask[:5], "index has 5 values of the type bool, expected .* a mask of 39 images"),
        (True, "expected a row number"),
        ([0, 39], "image 39 does not exist"),
    ]:
        with pytest.raises(IndexError, match=message):
            store[index]


def test_identities_of_images_are_read_as_those_of_groups(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for k in range(3):
        image.new("L", (8, 8), 80 * k).save(tmp_path / f"{k}.png")
    lines = ["sample,image,subject_id,time,event", *(f"{k + 6},{k}.png,p{k},1,1" for k in range(3))]
    (tmp_path / "cohort.csv").write_text("\n".join(lines))
    store = fairtte.data.table(tmp_path / "cohort.csv", sample="sample", image="image").images(tmp_path / "cache", size=(8, 8))
    assert sorted(store.samples) == ["6", "7", "8"]
    expected = [store.samples.index("7"), -1, store.samples.index("8")]
    assert list(store.rows([7.0, None, np.float32(8)])) == expected == list(store.rows(np.array([7, 5, 8])))


def test_masks_and_numbers_of_rows_mean_the_same(tmp_path):
    path = write_table(tmp_path)[0]
    found = fairtte.data.table(path, subject="person", attributes=[{"name": "age", "threshold": "median"}])
    rows = np.arange(12, 40)
    expected = found.groups(rows)
    assert not expected.equals(found.groups())
    mask = np.isin(np.arange(40), rows)
    for train in (mask, mask.tolist(), pd.Series(mask), pd.Series(mask, dtype="boolean"), rows.tolist(), pd.Series(rows, dtype="Int64")):
        assert found.groups(train).equals(expected)
        assert found.select(train).n == 28


def test_numbers_of_numpy_are_settings(tmp_path):
    found = cohort(tmp_path)
    expected = found.split(7, folds=4, fold=1, repeat=2).part
    assert np.array_equal(found.split(np.int64(7), folds=np.int32(4), fold=np.int64(1), repeat=np.uint8(2)).part, expected)
    fractions = np.array([0.8, 0.1, 0.1], dtype=np.float32)
    assert np.array_equal(found.split(7, fractions=fractions).part, found.split(7, fractions=(0.8, 0.1, 0.1)).part)
    assert np.array_equal(found.split(stratify=np.array(["sex"])).part, found.split(stratify=["sex"]).part)
    path = tmp_path / "cohort.csv"
    for threshold in (np.int64(60), np.float32(60)):
        own = fairtte.data.table(path, subject="person", attributes=["sex", {"name": "age", "threshold": threshold}])
        assert own.groups().equals(found.groups())


def test_images_beside_a_table_of_the_working_folder_are_found(pictures, monkeypatch):
    found, _, folder = pictures
    monkeypatch.chdir(folder)
    here = fairtte.data.table("cohort.csv", image="image", subject="person")
    assert list(here.to_pandas()["image"]) == list(found.to_pandas()["image"]) and here.source == found.source
    assert len(here.images("here", size=(16, 24))) == 39


def test_a_build_shows_its_progress(pictures, capsys):
    pytest.importorskip("tqdm")
    found, _, folder = pictures
    found.images(folder / "cache", size=(16, 24), progress=True)
    assert "40/40" in capsys.readouterr().err
    shown = []
    found._inner.images('{"size": [9, 9]}', str(folder / "cache"), 4, lambda done, total: shown.append((done, total)))
    assert shown[-1] == (40, 40)

    def fail(done, total):
        raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):
        found._inner.images('{"size": [10, 10]}', str(folder / "cache"), 4, fail)


def test_a_cohort_is_audited_without_other_steps(tmp_path):
    found = cohort(tmp_path)
    split = found.split(1)
    times = np.linspace(0, 40, 9)
    survival = np.exp(-np.outer(1 / (1 + found.time[split.test]), times))
    result = fairtte.evaluate(
        survival, times, found.time[split.test], found.event[split.test],
        groups=found.groups(split.train).iloc[split.test], subject=found.to_pandas()["subject_id"].to_numpy()[split.test],
        train=(found.time[split.train], found.event[split.train]), replicates=0, metrics=["c-td"], time_unit=found.time_unit,
    )  # fmt: skip
    assert set(result.by_group["attribute"]) == {"sex", "age"} and result["c_td"].value == 1.0
