//! The script of a task, and the call that submits it.

use std::path::{Path, PathBuf};

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::settings::Slurm;
use crate::CliError;
use crate::shell::{quoted, quoted_path};

/// The script of the program.
const TASK: &str = include_str!("task.sh");
const KEY: &str = "execute.slurm.template";

/// What a template can name.
#[derive(Serialize)]
struct Names {
    /// Title of the study in one line.
    name: String,
    /// Options of `sbatch`, each for a line `#SBATCH`.
    options: Vec<String>,
    /// Container, program and `study trial DIR`; places and options are put behind it.
    command: String,
    /// Folder of the study as a word of a shell.
    folder: String,
}

/// The script of the tasks of a study.
///
/// # Errors
/// [`CliError::Config`] if the template of the user cannot be read, is no script, or does not run the trials.
pub(crate) fn script(slurm: &Slurm, name: &str, folder: &Path) -> Result<String, CliError> {
    let failed = |message: String| CliError::setting(KEY, message, None);
    let template = match &slurm.template {
        Some(path) => std::fs::read_to_string(path).map_err(|error| failed(format!("{}: {error}", path.display())))?,
        None => TASK.to_owned(),
    };
    // In a container the program is that of the container.
    let program = match &slurm.container {
        Some(_) => PathBuf::from("fairtte"),
        None => std::env::current_exe()
            .map_err(|error| CliError::RunFolder { path: PathBuf::from("fairtte"), problem: error.to_string() })?,
    };
    let folder = quoted_path(folder);
    let before = slurm.container.as_deref().map(|container| format!("{} ", container.trim())).unwrap_or_default();
    let command = format!("{before}{} study trial {folder}", quoted_path(&program));
    let mut options = vec![format!("--job-name={}", job_name(name))];
    options.extend(slurm.options().iter().map(|option| in_head(option)));
    let names = Names { name: name.replace(char::is_control, " "), options, command: command.clone(), folder };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let text = environment.render_named_str("template", &template, Serde(&names));
    let mut text = text.map_err(|error| failed(format!("it cannot be filled in: {error}")))?;
    // The engine of templates takes the last line break away.
    if template.ends_with('\n') && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.starts_with("#!") {
        return Err(failed("its first line is not #!, as in #!/bin/bash".to_owned()));
    }
    if !text.contains(&command) {
        return Err(failed("it runs no trial: {{ command }} is not in it".to_owned()));
    }
    Ok(text)
}

/// The title as a name that needs no quotes.
fn job_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.chars().take(40).map(plain).collect()
}

/// An option for a line `#SBATCH`, which sbatch divides at spaces and ends at `#`: such a value is put in quotes, unless it is quoted or
/// escaped already.
fn in_head(option: &str) -> String {
    match option.split_once('=') {
        Some((name, value))
            if value.contains(|c: char| c.is_whitespace() || c == '#') && !value.contains(['"', '\'', '\\']) =>
        {
            format!("{name}=\"{}\"", value.replace('#', "\\#"))
        }
        _ => option.to_owned(),
    }
}

/// A call of `sbatch`: an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Tasks of the array.
    pub(crate) n: usize,
    /// Tasks that run at the same time.
    pub(crate) max_running: Option<usize>,
    /// Options of a person.
    pub(crate) options: Vec<String>,
    pub(crate) script: PathBuf,
    /// One line per task: its places.
    pub(crate) list: PathBuf,
    pub(crate) logs: PathBuf,
}

impl Call {
    /// The arguments of `sbatch`.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let at_a_time = self.max_running.map(|n| format!("%{n}")).unwrap_or_default();
        // sbatch replaces %a; a folder may have a % in its name.
        let logs = self.logs.display().to_string().replace('%', "%%");
        let mut all = vec![
            "--parsable".to_owned(),
            format!("--array=0-{}{at_a_time}", self.n.saturating_sub(1)),
            "--requeue".to_owned(),
            "--signal=B:USR1@120".to_owned(),
            "--open-mode=append".to_owned(),
            format!("--output={logs}/%A_%a.log"),
        ];
        all.extend(self.options.iter().cloned());
        all.extend([&self.script, &self.list].map(|path| path.display().to_string()));
        all
    }

    /// The call as a line of a shell.
    pub(crate) fn line(&self) -> String {
        let words: Vec<String> = self.arguments().iter().map(|word| quoted(word)).collect();
        format!("sbatch {}", words.join(" "))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_the_options_and_runs_the_trials_of_its_line() {
        let slurm = Slurm {
            partition: Some("gpu".to_owned()),
            cpus: Some(4),
            mem: Some("16G".to_owned()),
            container: Some("apptainer exec --nv image.sif".to_owned()),
            extra: vec!["--exclude=n7".to_owned()],
            ..Slurm::default()
        };
        let text = script(&slurm, "our films, \"two\"", Path::new("/a b/s")).unwrap();
        let head: Vec<&str> = text.lines().take(8).collect();
        assert_eq!(
            head,
            [
                "#!/bin/bash",
                "# A task of the study \"our films, \"two\"\": the trials in its line of the list $1, one after the other.",
                "#SBATCH --job-name=our-films---two-",
                "#SBATCH --partition=gpu",
                "#SBATCH --cpus-per-task=4",
                "#SBATCH --mem=16G",
                "#SBATCH --exclude=n7",
                "",
            ]
        );
        assert!(
            text.contains("    apptainer exec --nv image.sif fairtte study trial '/a b/s' $places --threads "),
            "{text}"
        );
        assert!(!text.contains("srun") && text.ends_with("exit \"$code\"\n"), "{text}");
        // Without a container the program is this one.
        let text = script(&Slurm::default(), "x", Path::new("/s")).unwrap();
        assert!(
            text.contains(&format!("{} study trial /s $places", std::env::current_exe().unwrap().display())),
            "{text}"
        );
    }

    #[test]
    fn a_value_with_spaces_is_one_word_of_a_line_for_sbatch() {
        // As `_get_argument` of sbatch reads a line: quotes hold spaces together, a backslash takes the next character as it is.
        for (option, line) in [
            ("--exclude=n7", "--exclude=n7"),
            ("--comment=films of 2024", "--comment=\"films of 2024\""),
            ("--comment=run #3", "--comment=\"run \\#3\""),
            ("--constraint=\"a100 & ib\"", "--constraint=\"a100 & ib\""),
            ("-wn1", "-wn1"),
        ] {
            assert_eq!(in_head(option), line);
        }
        let extra = vec!["--comment=films of 2024".to_owned()];
        let text = script(&Slurm { extra, ..Slurm::default() }, "x", Path::new("/s")).unwrap();
        assert!(text.contains("\n#SBATCH --comment=\"films of 2024\"\n"), "{text}");
    }

    #[test]
    fn a_template_of_the_user_is_filled_in_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let with = |text: &str| {
            let path = folder.path().join("task.sh");
            std::fs::write(&path, text).unwrap();
            let slurm = Slurm { template: Some(path), container: Some("c".to_owned()), ..Slurm::default() };
            script(&slurm, "x & y", Path::new("/s")).map_err(|error| error.to_string())
        };
        let text = with("#!/bin/sh\n# {{ name }} {{ folder }}\n{{ command }} 1\n");
        assert_eq!(text.unwrap(), "#!/bin/sh\n# x & y /s\nc fairtte study trial /s 1\n");
        for (text, sentence) in [
            ("{{ command }}", "its first line is not #!"),
            ("#!/bin/sh\necho", "it runs no trial"),
            ("#!/bin/sh\n{{ command }} {{ place }}", "it cannot be filled in"),
        ] {
            let error = with(text).unwrap_err();
            assert!(error.contains(sentence), "{error}");
        }
    }

    #[test]
    fn a_call_names_array_signal_and_log() {
        let call = Call {
            n: 8,
            max_running: Some(3),
            options: vec!["--exclude=n2".to_owned()],
            script: PathBuf::from("/s/todo/task.sh"),
            list: PathBuf::from("/s/todo/0001.txt"),
            logs: PathBuf::from("/s 5%/log"),
        };
        assert_eq!(
            call.line(),
            "sbatch --parsable '--array=0-7%3' --requeue '--signal=B:USR1@120' '--open-mode=append' \
             '--output=/s 5%%/log/%A_%a.log' '--exclude=n2' /s/todo/task.sh /s/todo/0001.txt"
        );
        assert_eq!(Call { max_running: None, ..call }.arguments()[1], "--array=0-7");
    }
}
