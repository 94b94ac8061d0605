//! Finds the dictionary of a file that contains the weights, and their layout.

use super::export::{EXPORT_LAYOUT, EXPORT_MARK, place_in_export};
use super::layouts::Layout;
use super::pickle::shown;
use super::{Container, WeightFile};

/// Metadata key that every file written by `fairtte weights import` has.
pub(super) const NATIVE_MARK: &str = "fairtte.backbone";

/// Tensors of a file that are candidates for weights.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) layout: Layout,
    /// The dictionary that contains them.
    pub(super) group: Vec<String>,
    /// Key without prefixes, and index of the tensor.
    pub(super) keys: Vec<(String, usize)>,
    /// Keys of the dictionary outside the network.
    pub(super) others: Vec<String>,
    /// Whether `fairtte weights export` wrote the file: weights of linear layers are `[out, in]` in any layout, and
    /// `others` are the layers after the backbone.
    pub(super) is_export: bool,
}

/// Names under which training programs keep the weights, best first.
const GROUPS: [&str; 6] = ["teacher", "model", "state_dict", "model_state_dict", "module", "net"];

/// Finds the weights of `file`. The error message says what was found instead.
pub(super) fn select(file: &WeightFile, asked: Layout) -> Result<Selected, String> {
    if file.container() == Container::Burnpack {
        return Err("it is a record of a run, which `fairtte weights export` makes a file of weights of".to_owned());
    }
    let is_native = file.metadata().iter().any(|(key, _)| key == NATIVE_MARK);
    if file.metadata().iter().any(|(key, _)| key == EXPORT_MARK) {
        return of_export(file, asked);
    }
    let group = group(file, asked)?;
    let in_group = file.tensors().iter().enumerate().filter(|(_, tensor)| tensor.group == group);
    let keys: Vec<(String, usize)> = in_group.map(|(at, tensor)| (tensor.key.clone(), at)).collect();
    let (keys, _) = without_prefix(keys, "module.", true);
    let layout = match asked {
        Layout::Auto if is_native => Layout::Native,
        Layout::Auto => detect(file, &keys, &group)?,
        asked => asked,
    };
    let (keys, others) = match layout {
        Layout::Dinov2 => without_prefix(keys, "backbone.", false),
        _ => (keys, Vec::new()),
    };
    Ok(Selected { layout, group, keys, others, is_export: false })
}

/// The backbone of a file that `fairtte weights export` wrote.
fn of_export(file: &WeightFile, asked: Layout) -> Result<Selected, String> {
    let written = file.metadata().iter().find(|(key, _)| key == EXPORT_LAYOUT).map(|(_, name)| name.as_str());
    let layout = match asked {
        Layout::Auto => Layout::ALL.into_iter().find(|layout| Some(layout.name()) == written),
        asked => Some(asked),
    };
    let layout = layout.ok_or_else(|| {
        let found = written.map_or_else(|| "no layout".to_owned(), shown);
        format!("its metadata {EXPORT_LAYOUT} name {found}, expected one of its layouts")
    })?;
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for (index, tensor) in file.tensors().iter().enumerate() {
        match place_in_export(&tensor.key) {
            (true, "") => keys.push((tensor.key.clone(), index)),
            (true, prefix) => {
                let network = prefix.trim_end_matches('.');
                return Err(format!("it holds one network per group ({network} and others), expected one network"));
            }
            (false, _) => others.push(tensor.key.clone()),
        }
    }
    Ok(Selected { layout, group: Vec::new(), keys, others, is_export: true })
}

fn group(file: &WeightFile, asked: Layout) -> Result<Vec<String>, String> {
    let has = |group: &[String]| file.tensors().iter().any(|tensor| tensor.group == group);
    let named = |name: &str| vec![name.to_owned()];
    let preferred = match asked {
        Layout::Medicalnet => Some("state_dict"),
        Layout::Mae => Some("model"),
        Layout::Dinov2 => Some("teacher"),
        _ => None,
    };
    let candidates = preferred.into_iter().chain(GROUPS).map(named).chain([Vec::new()]);
    let candidates: Vec<_> = candidates.collect();
    if let Some(group) = candidates.iter().find(|group| has(group)) {
        return Ok(group.clone());
    }
    if file.tensors().is_empty() {
        return Err(format!("it holds {} without tensors; save the state dictionary of the module", file.root()));
    }
    let first = &file.tensors()[0];
    let name = shown(&first.name());
    Err(format!("its tensors are below {name}, expected {} or the outermost dictionary", GROUPS.join(", ")))
}

/// Splits keys into those with `prefix`, without it, and the others. With `all`, does so only if every key has it.
fn without_prefix(keys: Vec<(String, usize)>, prefix: &str, all: bool) -> (Vec<(String, usize)>, Vec<String>) {
    let n_with = keys.iter().filter(|(key, _)| key.starts_with(prefix)).count();
    if n_with == 0 || (all && n_with < keys.len()) {
        return (keys, Vec::new());
    }
    let mut others = Vec::new();
    let mut stripped = Vec::with_capacity(n_with);
    for (key, tensor) in keys {
        match key.strip_prefix(prefix) {
            Some(key) => stripped.push((key.to_owned(), tensor)),
            None => others.push(key),
        }
    }
    (stripped, others)
}

/// Recognises the layout by keys that only one of them has.
fn detect(file: &WeightFile, keys: &[(String, usize)], group: &[String]) -> Result<Layout, String> {
    let find = |wanted: &str| {
        let matches = |key: &str| key == wanted || key.strip_prefix("backbone.") == Some(wanted);
        keys.iter().find(|(key, _)| matches(key)).map(|(_, tensor)| file.tensors()[*tensor].shape.len())
    };
    let has_decoder = || keys.iter().any(|(key, _)| key.starts_with("decoder_"));
    if find("features.0.0.weight").is_some() || find("stem.0.weight") == Some(5) {
        return Ok(Layout::Torchvision);
    }
    if find("conv_stem.weight").is_some() {
        return Ok(Layout::Timm);
    }
    match find("conv1.weight") {
        Some(5) => return Ok(Layout::Medicalnet),
        Some(4) => return Ok(Layout::Torchvision),
        _ => {}
    }
    if find("patch_embed.proj.weight").is_some() {
        return Ok(match group {
            [group] if group == "teacher" => Layout::Dinov2,
            [group] if group == "model" => Layout::Mae,
            _ if has_decoder() => Layout::Mae,
            _ => Layout::Timm,
        });
    }
    let examples: Vec<String> = keys.iter().take(3).map(|(key, _)| shown(key)).collect();
    Err(format!("its layout cannot be recognised from keys such as {}", examples.join(", ")))
}
