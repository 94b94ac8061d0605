#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_classical::biasing::{Biasing, Cell, CellResult, HalfLosses, Measure, analyse};
use fairtte_metrics::EvaluationSettings;
use fairtte_metrics::evaluation::{MetricPower, PowerAt, PowerSettings, Rate};

use super::{biasing, plain, power, render};

/// Harrell's C rises with the share in both tables, the other measure does not.
fn results() -> Vec<CellResult> {
    let mut results = Vec::new();
    for (table, offset) in [("<lung>", 0.0), ("whas", 0.01)] {
        for (place, share) in [0.0, 0.3, 0.6, 0.9].into_iter().enumerate() {
            let losses = |measure, difference: f64| HalfLosses {
                measure,
                biased: Some(0.75 - difference),
                unbiased: Some(0.75),
                reason: None,
            };
            let flat = [0.02, 0.01, 0.02, 0.015][place];
            let mut of =
                vec![losses(Measure::HarrellC, 0.02 + 0.2 * share + offset), losses(Measure::Snl, flat + offset)];
            if place == 3 {
                of[1] = HalfLosses { biased: None, reason: Some("no event".to_owned()), ..of[1].clone() };
            }
            let cell = Cell { method: Biasing::Permutation, share, repeat: 0 };
            results.push(CellResult { table: table.to_owned(), cell, n_half: 50, n_drawn: place, losses: of });
        }
    }
    results
}

#[test]
fn the_page_names_what_notices_and_what_does_not() {
    let analysis = analyse(&results()).unwrap();
    let page = biasing::page(&analysis, vec![("trees".to_owned(), "500".to_owned())]).unwrap();
    let verdict = &page.sections[0].verdict;
    assert_eq!(verdict[0], "permutation: noticed by Harrell's C.");
    assert_eq!(verdict[1], "permutation: not shown to be noticed by SNL (ERV).");
    assert!(verdict[2].starts_with("2 values could not be computed"), "{verdict:?}");
    let html = render(&page).unwrap();
    for part in ["&lt;lung&gt;", "id=\"f-permutation-title\"", "id=\"rho-permutation-title\"", "0.200", "trees"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<lung>") && !html.contains("<script"));
    let shown = plain(&page.sections[0].sheets[0]);
    assert!(shown.contains("\nHarrell's C  0.025"), "{shown}");
    let means = page.sections[0].sheets[0].csv().unwrap();
    // (0.02 + 0.03) / 2 at 0, 0.18 more at 0.9.
    assert!(means.lines().nth(1).unwrap().starts_with("Harrell's C,0.025"), "{means}");
}

#[test]
fn every_cell_is_a_row_with_its_reason() {
    let text = biasing::rows(&results()).csv().unwrap();
    assert_eq!(text.lines().count(), 1 + 2 * 4 * 2);
    assert!(
        text.starts_with("table,method,share,repeat,n_half,n_drawn,measure,biased,unbiased,difference,reason\n"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.ends_with("no event")).count(), 2);
}

#[test]
fn a_power_curve_says_the_smallest_share_and_what_is_found_without_degradation() {
    let at = |share: f64, rate: f64| {
        let rate = Rate { n_found: 4, n: 80, n_undefined: 1, rate, lower: rate / 2.0, upper: rate };
        PowerAt { share, mean_gap: Some(0.1), by_interval: None, by_permutation: Some(rate) }
    };
    let metric = MetricPower {
        name: "c".to_owned(),
        label: "C^td".to_owned(),
        shares: vec![at(0.0, 0.05), at(0.5, 0.9)],
        smallest_by_interval: None,
        smallest_by_permutation: Some(0.5),
    };
    let evaluation = EvaluationSettings { replicates: 0, ..EvaluationSettings::default() };
    let page = power::page(&[metric], "sex F", &PowerSettings::default(), &evaluation, Vec::new());
    let expected = "C^td: a gap is found in 80 % of repeats by permutation from σ = 0.5 on; without degradation 5 % by permutation \
                    (2.5 % to 5 %). Of the repeats at all shares 2 \
                    of 160 have no test of the gap: they find nothing.";
    assert_eq!(page.sections[0].verdict, [expected]);
    let html = render(&page).unwrap();
    assert!(html.contains("id=\"power-title\"") && html.contains("C<sup>td</sup>"), "{html}");
    assert_eq!(page.sections[0].sheets[1].csv().unwrap().lines().count(), 3);
}
