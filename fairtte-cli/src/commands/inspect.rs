//! `fairtte inspect`: the content of an image or volume as read, or the reason why it is refused.

use fairtte_data::image::{Limits, inspect_file};
use serde_json::json;

use super::{print, print_json};
use crate::CliError;
use crate::args::Inspect;
use crate::progress::say;

pub(super) fn run(arguments: &Inspect) -> Result<(), CliError> {
    let mut limits = Limits::default();
    limits.max_pixels = arguments.max_pixels.unwrap_or(limits.max_pixels);
    limits.max_bytes = arguments.max_bytes.unwrap_or(limits.max_bytes);
    let n_files = arguments.files.len();
    let mut entries = Vec::with_capacity(n_files);
    let mut refused = Vec::new();
    for path in &arguments.files {
        let name = path.display().to_string();
        match inspect_file(path, &limits, &arguments.at) {
            Ok(inspection) => {
                if arguments.json {
                    entries.push(json!({ "file": name, "accepted": true, "content": inspection }));
                } else {
                    print(inspection);
                }
            }
            Err(problem) => {
                if arguments.json {
                    let (reason, sentence) = (problem.fault.code(), &problem.detail);
                    entries.push(json!({ "file": name, "accepted": false, "reason": reason, "sentence": sentence }));
                } else if n_files > 1 {
                    say(format!("{name} is refused: {}", problem.detail));
                }
                refused.push((name, problem.detail));
            }
        }
    }
    if arguments.json {
        print_json(&entries)?;
    }
    match refused.as_slice() {
        [] => Ok(()),
        [(name, sentence)] if n_files == 1 => Err(CliError::Refused { what: name.clone(), sentence: sentence.clone() }),
        several => Err(CliError::Refused {
            what: format!("{} of {n_files} files", several.len()),
            sentence: "see above".to_owned(),
        }),
    }
}
