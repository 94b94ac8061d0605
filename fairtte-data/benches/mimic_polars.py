"""Default MIMIC-CXR labels with lazy scans in polars, written as cohort.parquet and exclusions.csv; prints counts, seconds, memory."""

import os
import resource
import sys
import time

import polars as pl

folder = sys.argv[1]
start = time.perf_counter()
meta = pl.scan_csv(f"{folder}/mimic-cxr-2.0.0-metadata.csv.gz", schema_overrides={"StudyDate": pl.String}).with_row_index("row").select(
    "row", "dicom_id", "subject_id", "study_id", pl.col("StudyDate").str.to_date("%Y%m%d")
)
patients = pl.scan_csv(f"{folder}/hosp/patients.csv.gz", schema_overrides={"dod": pl.String}).select(
    "subject_id", "gender", "anchor_age", "anchor_year", pl.col("dod").str.to_date("%Y-%m-%d")
)
stays = pl.scan_csv(f"{folder}/hosp/admissions.csv.gz", infer_schema=False).select(
    pl.col("subject_id").cast(pl.Int64),
    "admittime",
    pl.col("dischtime").str.slice(0, 10).str.to_date("%Y-%m-%d"),
    "race",
)
silent = ["UNKNOWN", "PATIENT DECLINED TO ANSWER", "UNABLE TO OBTAIN", "?"]
discharges = stays.group_by("subject_id").agg(pl.col("dischtime").max().alias("last"))
races = (
    stays.filter(pl.col("race").is_not_null() & ~pl.col("race").is_in(silent))
    .sort("admittime")
    .group_by("subject_id")
    .agg(pl.col("race").first())
)
joined = (
    meta.unique("dicom_id", keep="first", maintain_order=True)
    .join(patients, on="subject_id", how="left", maintain_order="left")
    .join(discharges, on="subject_id", how="left", maintain_order="left")
    .join(races, on="subject_id", how="left", maintain_order="left")
)
event = pl.col("dod").is_not_null()
reason = (
    pl.when(pl.col("gender").is_null()).then(pl.lit("no_patient"))
    .when(~event & pl.col("last").is_null()).then(pl.lit("no_censor_date"))
    .when(event & (pl.col("StudyDate") > pl.col("dod"))).then(pl.lit("after_death"))
    .when(~event & (pl.col("StudyDate") > pl.col("last"))).then(pl.lit("after_last_discharge"))
)
days = (
    pl.when(event).then(pl.col("dod") - pl.col("StudyDate"))
    .otherwise(pl.col("last") + pl.duration(days=365) - pl.col("StudyDate")).dt.total_days()
)
age = pl.col("anchor_age") + pl.col("StudyDate").dt.year() - pl.col("anchor_year")
out = joined.with_columns(
    reason.alias("reason"), days.alias("time"), event.cast(pl.Int8).alias("event"), age.alias("age"),
    (age > 60).cast(pl.Int8).alias("age_group"), (pl.col("gender") == "M").cast(pl.Int8).alias("sex"),
    pl.col("race").str.starts_with("WHITE").fill_null(False).cast(pl.Int8).alias("race_group"),
).collect()
kept = out.filter(pl.col("reason").is_null())
subject = pl.col("subject_id").cast(pl.String)
path = pl.concat_str(
    pl.lit(f"{os.path.abspath(folder)}/files/p"), subject.str.slice(0, 2), pl.lit("/p"), subject,
    pl.lit("/s"), pl.col("study_id").cast(pl.String), pl.lit("/"), "dicom_id", pl.lit(".jpg"),
)
output = f"{folder}/output-polars"
os.makedirs(output, exist_ok=True)
kept.select(
    pl.col("dicom_id").alias("sample_id"), subject.alias("subject_id"), pl.col("time").cast(pl.Float64),
    pl.col("event").cast(pl.Int64), pl.col("age").cast(pl.String), "age_group", "sex", "race", "race_group",
    path.alias("image"),
).write_parquet(f"{output}/cohort.parquet")
row = pl.lit(" (mimic-cxr-2.0.0-metadata.csv.gz, row ") + (pl.col("row") + 2).cast(pl.String) + pl.lit(")")
left_out = out.filter(pl.col("reason").is_not_null()).select(
    pl.col("dicom_id").alias("sample_id"), "reason", (pl.col("reason") + row).alias("source")
)
left_out.write_csv(f"{output}/exclusions.csv")
for name in ["cohort.parquet", "exclusions.csv"]:
    with open(f"{output}/{name}", "rb+") as file:
        os.fsync(file)  # A result that a power cut can take back is not written.
seconds = time.perf_counter() - start
print(f"polars {pl.__version__}: {kept.height} kept, {kept['event'].sum()} events, {kept['race_group'].sum()} White, "
      f"mean time {kept['time'].mean():.4f}; {seconds:.2f} s, "
      f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
