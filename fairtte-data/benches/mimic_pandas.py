"""Default MIMIC-CXR labels with pandas; prints counts, seconds and peak memory."""

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
seconds = time.perf_counter() - start
print(f"pandas {pd.__version__}: {len(kept)} kept, {kept['event'].sum()} events, {kept['race_group'].sum()} White, "
      f"mean time {kept['time'].mean():.4f}; {seconds:.2f} s, "
      f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
