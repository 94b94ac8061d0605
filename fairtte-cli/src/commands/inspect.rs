//! `fairtte inspect`: what the reader sees in an image or volume, or the sentence why it is refused.

use fairtte_data::image::{Limits, inspect_file};
use serde_json::json;

use super::{print, print_json};
use crate::CliError;
use crate::args::Inspect;
use crate::progress::say;

pub(super) fn run(arguments: &Inspect) -> Result<(), CliError> {
    let limits = Limits::default();
    let n_files = arguments.files.len();
    let mut entries = Vec::with_capacity(n_files);
    let mut refused = Vec::new();
    for path in &arguments.files {
        match inspect_file(path, &limits, &arguments.at) {
            Ok(inspection) => {
                if arguments.json {
                    entries.push(json!({ "file": path, "accepted": true, "content": inspection }));
                } else {
                    print(format!("{}\n{inspection}", path.display()));
                }
            }
            Err(problem) => {
                if arguments.json {
                    let (reason, sentence) = (problem.reason, &problem.detail);
                    entries.push(json!({ "file": path, "accepted": false, "reason": reason, "sentence": sentence }));
                } else if n_files > 1 {
                    say(format!("{} is refused: {}", path.display(), problem.detail));
                }
                refused.push((path.clone(), problem.detail));
            }
        }
    }
    if arguments.json {
        print_json(&entries)?;
    }
    match refused.as_slice() {
        [] => Ok(()),
        [(path, sentence)] if n_files == 1 => {
            Err(CliError::Refused { what: path.display().to_string(), sentence: sentence.clone() })
        }
        several => Err(CliError::Refused {
            what: format!("{} of {n_files} files", several.len()),
            sentence: "see above".to_owned(),
        }),
    }
}
