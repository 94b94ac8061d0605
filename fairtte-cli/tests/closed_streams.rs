//! A reader that stops early, or a stream that is closed, is no error of the program.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// 40 samples with a curve each, so that the table on the terminal has many lines.
fn predictions(folder: &Path) -> String {
    let mut text = "sample,time,event,sex,0.5,1,2\n".to_owned();
    for k in 0..40 {
        let (time, event, sex) = (0.3 + f64::from(k) / 15.0, u8::from(k % 3 > 0), if k % 2 == 0 { "F" } else { "M" });
        let survival = 0.4 + f64::from(k % 7) / 12.0;
        writeln!(text, "s{k},{time},{event},{sex},0.95,{survival},{}", survival / 2.0).unwrap();
    }
    let path = folder.join("curves.csv");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The exit code of the program in a shell, with these redirections behind it, and what reached the reader.
fn with_streams(streams: &str) -> (i32, String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let script = format!("set -o pipefail; \"$0\" \"$@\" {streams}");
    let program = env!("CARGO_BIN_EXE_fairtte");
    let arguments = ["evaluate", "--attributes", "sex", "--set", "replicates=20", "--predictions"];
    let mut shell = Command::new("bash");
    shell.args(["-c", &script, program]).args(arguments).arg(predictions(folder.path())).arg("--output").arg(&page);
    let output = shell.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), shown, page.exists())
}

#[test]
fn a_pipe_or_stream_that_is_closed_ends_without_a_complaint() {
    for streams in ["2>&1 | head -1", "| true", "2>&1 | true", ">&-", "2>&-", ">&- 2>&-", "2>&1 | (exec <&-; sleep 1)"]
    {
        let (code, shown, has_page) = with_streams(streams);
        assert!([0, 141].contains(&code), "{streams}: exit code {code}: {shown}");
        assert!(!shown.contains("bug") && !shown.contains("panicked"), "{streams}: {shown}");
        assert!(has_page, "{streams}: the page is written all the same");
    }
}

/// What the parser of the arguments prints itself; the reader is gone before the program starts.
#[test]
fn help_version_and_usage_errors_keep_their_exit_codes_without_a_reader() {
    let calls: [(&[&str], i32); 6] = [
        (&["--help"], 0),
        (&["evaluate", "--help"], 0),
        (&["--version"], 0),
        (&["evaluate", "--no-such-option"], 2),
        (&["no-such-command"], 2),
        (&["evaluate"], 2),
    ];
    for (arguments, expected) in calls {
        let script = "set -o pipefail; { sleep 0.2; \"$0\" \"$@\" 2>&1; } | true";
        let output =
            Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_fairtte")]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}");
    }
}
