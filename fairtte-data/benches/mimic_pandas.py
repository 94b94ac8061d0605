"""Default MIMIC-CXR labels with pandas, written as cohort.parquet and exclusions.csv; prints counts, seconds, memory."""

import os
import resource
import sys
import time

import pandas as pd

folder = sys.argv[1]
start = time.perf_counter()
meta = pd.read_csv(f"{folder}/mimic-cxr-2.0.0-metadata.csv.gz", usecols=["dicom_id", "subject_id", "study_id", "StudyDate"])
patients = pd.read_csv(f"{folder}/hosp/patients.csv.gz", usecols=["subject_id", "gender", "anchor_age", "anchor_year", "dod"])
stays = pd.read_csv(f"{folder}/hosp/admissions.csv.gz", usecols=["subject_id", "admittime", "dischtime", "race"])
# Dates beyond 2262 do not fit nanoseconds; days do.
day = lambda text: pd.to_datetime(text, format="%Y-%m-%d").astype("datetime64[s]")
meta["StudyDate"] = pd.to_datetime(meta["StudyDate"].astype(str), format="%Y%m%d").astype("datetime64[s]")
patients["dod"] = day(patients["dod"])
last = stays.assign(last=day(stays["dischtime"].str[:10])).groupby("subject_id")["last"].max()
silent = ["UNKNOWN", "PATIENT DECLINED TO ANSWER", "UNABLE TO OBTAIN", "?"]
race = stays[stays["race"].notna() & ~stays["race"].isin(silent)].sort_values("admittime").groupby("subject_id")["race"].first()
meta["row"] = range(len(meta))
out = meta.drop_duplicates("dicom_id").merge(patients, on="subject_id", how="left")
out = out.merge(last, left_on="subject_id", right_index=True, how="left").merge(race, left_on="subject_id", right_index=True, how="left")
event = out["dod"].notna()
keep = out["gender"].notna() & (event | out["last"].notna())
keep &= ~(event & (out["StudyDate"] > out["dod"])) & ~(~event & (out["StudyDate"] > out["last"]))
end = out["dod"].where(event, out["last"] + pd.Timedelta(days=365))
out["time"] = (end - out["StudyDate"]).dt.days
out["event"] = event.astype("int8")
out["age"] = out["anchor_age"] + out["StudyDate"].dt.year - out["anchor_year"]
out["age_group"] = (out["age"] > 60).astype("int8")
out["sex"] = (out["gender"] == "M").astype("int8")
out["race_group"] = out["race"].str.startswith("WHITE").fillna(False).astype("int8")
kept = out[keep]
output = f"{folder}/output-pandas"
os.makedirs(output, exist_ok=True)
subject = kept["subject_id"].astype(str)
path = (
    f"{os.path.abspath(folder)}/files/p" + subject.str[:2] + "/p" + subject
    + "/s" + kept["study_id"].astype(str) + "/" + kept["dicom_id"] + ".jpg"
)
pd.DataFrame({
    "sample_id": kept["dicom_id"], "subject_id": subject, "time": kept["time"].astype(float),
    "event": kept["event"].astype("int64"), "age": kept["age"].astype(int).astype(str), "age_group": kept["age_group"],
    "sex": kept["sex"], "race": kept["race"], "race_group": kept["race_group"], "image": path,
}).to_parquet(f"{output}/cohort.parquet", compression="zstd", index=False)
reason = pd.Series("after_last_discharge", index=out.index)
reason[event] = "after_death"
reason[~event & out["last"].isna()] = "no_censor_date"
reason[out["gender"].isna()] = "no_patient"
left_out = out[~keep]
row = (left_out["row"] + 2).astype(str)
pd.DataFrame({
    "sample_id": left_out["dicom_id"], "reason": reason[~keep],
    "source": reason[~keep] + " (mimic-cxr-2.0.0-metadata.csv.gz, row " + row + ")",
}).to_csv(f"{output}/exclusions.csv", index=False)
for name in ["cohort.parquet", "exclusions.csv"]:
    with open(f"{output}/{name}", "rb+") as file:
        os.fsync(file)  # A result that a power cut can take back is not written.
seconds = time.perf_counter() - start
print(f"pandas {pd.__version__}: {len(kept)} kept, {kept['event'].sum()} events, {kept['race_group'].sum()} White, "
      f"mean time {kept['time'].mean():.4f}; {seconds:.2f} s, "
      f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
