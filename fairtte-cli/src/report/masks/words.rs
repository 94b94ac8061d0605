//! What the numbers of masks say, in sentences.

use fairtte_metrics::evaluation::MaskMetric;

use super::super::format::{list, of_level, percent};
use super::super::verdict::{largest_difference, percent_of, some_of, with_ends};
use super::MaskPage;

/// How good the masks are, whether groups differ in each class, and which masks were not found at all.
pub(super) fn verdict(page: &MaskPage<'_>) -> Vec<String> {
    let mut said = vec![overall(page)];
    // One sentence per class: its first metric.
    let firsts = page.report.classes.iter().filter_map(|class| {
        let is_of =
            |name: &str| MaskMetric::ALL.iter().any(|metric| format!("{}-{}", metric.name(), class.name) == name);
        page.evaluation.metrics.iter().find(|metric| is_of(&metric.name))
    });
    let mut differences: Vec<String> = firsts.map(|metric| largest_difference(metric, page.evaluation)).collect();
    differences.dedup();
    said.extend(differences);
    said.extend(not_found(page));
    said
}

fn overall(page: &MaskPage<'_>) -> String {
    let first = page.report.metrics.first();
    let kind = first.and_then(|first| MaskMetric::ALL.into_iter().find(|metric| metric.is_of(&first.name)));
    let (Some(first), Some(kind)) = (first, kind) else { return "No metric was asked for.".to_owned() };
    let same = page.report.metrics.iter().filter(|metric| kind.is_of(&metric.name));
    let numbers: Vec<String> = same.map(|metric| format!("{} {}", metric.label, with_ends(&metric.overall))).collect();
    let level = if page.report.settings.replicates > 0 && first.overall.lower.is_some() {
        format!(" (in brackets: {} intervals)", percent(page.report.settings.level))
    } else {
        String::new()
    };
    format!("Mean over samples: {}{level}.", list(&numbers))
}

/// Classes that were there and not predicted at all, with the groups where this is most frequent.
fn not_found(page: &MaskPage<'_>) -> Option<String> {
    let mut sentences = Vec::new();
    for class in &page.report.classes {
        let of_class = || page.report.empty.iter().filter(|of| of.class == class.name);
        let Some(all) = of_class().find(|of| of.attribute.is_none() && of.n_predicted > 0) else { continue };
        let share = |n: usize, of: usize| n as f64 / of.max(1) as f64;
        let overall = share(all.n_predicted, all.n);
        let more = of_class().filter(|of| of.attribute.is_some() && share(of.n_predicted, of.n) > 1.5 * overall);
        let groups: Vec<String> = more
            .map(|of| {
                let group = of_level(of.attribute.as_deref().unwrap_or(""), of.level.as_deref().unwrap_or(""));
                format!("{group} ({} of {})", of.n_predicted, of.n)
            })
            .collect();
        let more = if groups.is_empty() { String::new() } else { format!("; more often in {}", some_of(&groups)) };
        sentences.push(missed(&class.name, (all.n_predicted, all.n), &more));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// In how many samples nothing of a class that is there was found, and what follows.
fn missed(class: &str, (n, of): (usize, usize), more: &str) -> String {
    let share = percent_of(n as f64 / of.max(1) as f64);
    format!(
        "In {n} of {of} samples ({share}) no {class} was found: their overlap counts as 0, and their distances are left out{more}."
    )
}

#[cfg(test)]
mod tests {
    use super::missed;

    #[test]
    fn masks_that_were_not_found_are_counted() {
        assert_eq!(
            missed("cup", (1, 2), "; more often in age <= 60 (1 of 1)"),
            "In 1 of 2 samples (50.0 %) no cup was found: their overlap counts as 0, and their distances are left out; more often in \
             age <= 60 (1 of 1)."
        );
    }
}
