//! Seconds and memory of one call.

use std::fs;
use std::time::Instant;

use fairtte_metrics::Reading;

/// The result of one call, with its time and memory.
pub struct Measured {
    pub value: f64,
    /// Wall time, the best of three calls if they are short.
    pub seconds: f64,
    /// Peak memory of the call above the memory in use before it, in MB; `None` where the system does not report it.
    pub megabytes: Option<f64>,
}

pub fn measure(call: impl Fn() -> f64) -> Measured {
    let before = memory("VmRSS:");
    // Linux: resets the recorded peak to the memory in use now.
    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let clock = || {
        let start = Instant::now();
        let value = call();
        (value, start.elapsed().as_secs_f64())
    };
    let (value, mut seconds) = clock();
    let peak = if reset { memory("VmHWM:") } else { None };
    if seconds < 1.0 {
        seconds = (0..2).map(|_| clock().1).fold(seconds, f64::min);
    }
    Measured { value, seconds, megabytes: peak.zip(before).map(|(peak, before)| (peak - before) / 1024.0) }
}

/// A line of `/proc/self/status`, in kB.
fn memory(key: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl Measured {
    pub fn json(&self, name: &str, reading: Reading) -> String {
        let memory = self.megabytes.map_or_else(|| "null".to_owned(), |megabytes| megabytes.to_string());
        let Self { value, seconds, .. } = self;
        format!("\"{name} {reading}\": {{\"value\": {value}, \"seconds\": {seconds}, \"megabytes\": {memory}}}")
    }
}
