//! The scenarios, and settings in which confounding and subgroups vary.

use fairtte_classical::generator::{
    CensoringSettings, Gauss, GeneratorSettings, Hazard, LogLinear, Piece, SubgroupSettings, TreatmentSettings,
    UnmeasuredSettings,
};

/// Settings by the name of their row.
type Named = Vec<(String, GeneratorSettings)>;

/// Scenarios by name, with the group of scenarios that they belong to.
pub fn scenarios() -> Vec<(&'static str, &'static str, GeneratorSettings)> {
    let random = CensoringSettings {
        hazard: Hazard::LogLinear(LogLinear { rate: 0.1, ..LogLinear::default() }),
        ..CensoringSettings::default()
    };
    let of = |hazard: Hazard, censoring: Option<Hazard>| GeneratorSettings {
        hazard,
        censoring: censoring
            .map_or(random.clone(), |hazard| CensoringSettings { hazard, ..CensoringSettings::default() }),
        ..GeneratorSettings::default()
    };
    let gauss = |covariates| Hazard::Gauss(Gauss { covariates, ..Gauss::default() });
    let piece = |covariates| Hazard::Piece(Piece { covariates, ..Piece::default() });
    vec![
        ("constant-1", "constant", of(Hazard::Constant1, None)),
        ("constant-2", "constant", of(Hazard::Constant2, None)),
        ("scenario-1", "constant", of(Hazard::Scenario1, Some(Hazard::Censoring1))),
        ("scenario-2", "constant", of(Hazard::Scenario2, None)),
        ("scenario-3", "time-varying", of(Hazard::Scenario3, Some(Hazard::Censoring3))),
        ("scenario-4", "time-varying", of(Hazard::Scenario4, None)),
        ("scenario-5", "time-varying", of(Hazard::Scenario5, None)),
        ("scenario-6", "time-varying", of(Hazard::Scenario6, None)),
        ("scenario-7", "time-varying", of(Hazard::Scenario7, None)),
        ("scenario-8", "time-varying", of(Hazard::Scenario8, None)),
        ("scenario-9", "time-varying", of(Hazard::Scenario9, None)),
        ("scenario-10", "time-varying", of(Hazard::Scenario10, Some(Hazard::Censoring10))),
        ("gauss-2", "non-linear", of(gauss(2), None)),
        ("gauss-4", "non-linear", of(gauss(4), None)),
        ("piece-1", "non-linear", of(piece(1), None)),
        ("piece-4", "non-linear", of(piece(4), None)),
        ("piece-9", "non-linear", of(piece(9), None)),
    ]
}

/// `piece-9` by number and weight of measured confounders; on average as many people are treated as not.
pub fn confounded() -> Named {
    let settings = |count: u8, weight: f64| {
        let hazard = Hazard::Piece(Piece { covariates: 9, ..Piece::default() });
        let probability = 1.0 / (1.0 + (weight * f64::from(count) / 2.0).exp());
        let confounders = (0..usize::from(count)).collect();
        let treatment = TreatmentSettings { probability, confounders, weight, unmeasured: 0.0 };
        (format!("{count}, {weight}"), GeneratorSettings { hazard, treatment, ..GeneratorSettings::default() })
    };
    [1, 4, 9].into_iter().flat_map(|count| [0.0, 1.0, 3.0].map(|weight| settings(count, weight))).collect()
}

/// `piece-4` by correlation and weight of an unmeasured confounder.
pub fn unmeasured() -> Named {
    let settings = |correlation: f64, weight: f64| {
        let hazard = Hazard::Piece(Piece { covariates: 4, ..Piece::default() });
        let probability = 1.0 / (1.0 + (weight / 2.0_f64).exp());
        let treatment = TreatmentSettings { probability, unmeasured: weight, ..TreatmentSettings::default() };
        let unmeasured = UnmeasuredSettings { correlation, hazard: 3.0, censoring: 0.0 };
        let settings = GeneratorSettings { hazard, treatment, unmeasured, ..GeneratorSettings::default() };
        (format!("{correlation}, {weight}"), settings)
    };
    [0.0, 0.3].into_iter().flat_map(|z| [0.0, 3.0, 10.0].map(|weight| settings(z, weight))).collect()
}

/// `piece-1` by means of two subgroups and share of the second.
pub fn subgrouped() -> Named {
    let settings = |means: [f64; 2], share: f64| {
        let subgroups = SubgroupSettings {
            shares: vec![1.0 - share, share],
            means: means.to_vec(),
            deviation: 0.1,
            ..SubgroupSettings::default()
        };
        let hazard = Hazard::Piece(Piece { covariates: 1, ..Piece::default() });
        (format!("{means:?}, {share}"), GeneratorSettings { hazard, subgroups, ..GeneratorSettings::default() })
    };
    let means = [[0.45, 0.55], [0.3, 0.7], [0.15, 0.85]];
    means.into_iter().flat_map(|means| [0.1, 0.5, 0.9].map(|share| settings(means, share))).collect()
}
