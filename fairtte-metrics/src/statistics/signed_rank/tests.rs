use approx::assert_relative_eq;

use super::*;

const SCIPY: SignedRankMethod = SignedRankMethod::ScipyAuto { continuity_correction: false };
const NORMAL: SignedRankMethod = SignedRankMethod::Normal { continuity_correction: false };
const CORRECTED: SignedRankMethod = SignedRankMethod::Normal { continuity_correction: true };
const TABLE: SignedRankMethod = SignedRankMethod::UntiedTable;

fn test(
    differences: &[f64],
    zeros: ZeroDifferences,
    alternative: Alternative,
    method: SignedRankMethod,
) -> SignedRankTest {
    wilcoxon_of_differences(differences, &SignedRankSettings { alternative, zeros, method }).unwrap()
}

/// 200 differences with 20 zeros and 6 sizes.
fn many_ties() -> Vec<f64> {
    (0..200).map(|i| f64::from(i * 37 % 101 / 10) - 4.0).collect()
}

/// Ranks 1 to 200 with signs.
fn no_ties() -> Vec<f64> {
    (1..=200).map(|i| f64::from(if i * i % 7 < 3 { i } else { -i })).collect()
}

// Expected values of the three tests below: `scipy.stats.wilcoxon` of scipy 1.17.1.

#[test]
fn two_hundred_pairs_with_ties_and_zeros_match_scipy() {
    let (drop, pratt, split) = (ZeroDifferences::Drop, ZeroDifferences::Pratt, ZeroDifferences::Split);
    let (two, greater, less) = (Alternative::TwoSided, Alternative::Greater, Alternative::Less);
    let golden = [
        (drop, two, SCIPY, 10_009.5, 0.007_407_365_485_336_76, Some(2.677_952_804_615_159_7)),
        (drop, two, TABLE, 10_009.5, 0.007_557_271_745_733_951, None),
        (drop, greater, CORRECTED, 10_009.5, 0.003_711_631_179_625_854_5, Some(2.677_234_662_270_13)),
        (drop, less, TABLE, 10_009.5, 0.996_253_906_373_377_1, None),
        (pratt, two, SCIPY, 12_029.5, 0.010_621_002_044_633_504, Some(2.554_927_162_597_872)),
        (pratt, greater, TABLE, 12_029.5, 0.007_775_183_507_031_769, None),
        (pratt, less, CORRECTED, 12_029.5, 0.994_698_841_301_452_9, Some(2.555_540_001_926_871_3)),
        (split, two, NORMAL, 12_134.5, 0.010_653_305_249_880_762, Some(2.553_869_905_183_449_7)),
        (split, greater, TABLE, 12_134.5, 0.005_402_618_273_530_835, None),
        (split, less, CORRECTED, 12_134.5, 0.994_682_711_092_991_3, Some(2.554_482_490_912_685_3)),
    ];
    for (zeros, alternative, method, sum, p_value, z) in golden {
        let found = test(&many_ties(), zeros, alternative, method);
        assert_eq!((found.n, found.n_zero, found.n_tied), (200, 20, 180));
        assert_eq!(found.positive_rank_sum, sum);
        assert_relative_eq!(found.p_value, p_value, max_relative = 1e-12);
        assert_eq!(found.z.is_some(), z.is_some());
        assert_relative_eq!(found.z.unwrap_or(0.0), z.unwrap_or(0.0), max_relative = 1e-14);
    }
}

#[test]
fn two_hundred_untied_pairs_match_scipy() {
    let drop = ZeroDifferences::Drop;
    // scipy's upper tail is 1 minus a sum near 1, so it is good to 1e-16 in absolute terms only.
    let exact = test(&no_ties(), drop, Alternative::TwoSided, SignedRankMethod::Exact);
    assert_relative_eq!(exact.p_value, 5.506_245_059_905_268e-8, epsilon = 1e-15);
    assert_eq!(exact.p_value, test(&no_ties(), drop, Alternative::TwoSided, TABLE).p_value);
    let auto = test(&no_ties(), drop, Alternative::TwoSided, SCIPY);
    assert_eq!((auto.null, auto.smaller_rank_sum()), (SignedRankNull::Normal, 5_686.0));
    assert_relative_eq!(auto.p_value, 1.010_515_679_928_102_6e-7, max_relative = 1e-12);
    let corrected = test(&no_ties(), drop, Alternative::TwoSided, CORRECTED);
    assert_relative_eq!(corrected.p_value, 1.013_912_717_872_161_7e-7, max_relative = 1e-12);
}

#[test]
fn the_smallest_samples_match_scipy() {
    let (drop, pratt, split) = (ZeroDifferences::Drop, ZeroDifferences::Pratt, ZeroDifferences::Split);
    let (two, greater, less) = (Alternative::TwoSided, Alternative::Greater, Alternative::Less);
    let golden: [(&[f64], _, _, _, f64); 18] = [
        (&[2.5], drop, two, SCIPY, 1.0),
        (&[2.5], drop, greater, SCIPY, 0.5),
        (&[2.5], drop, two, NORMAL, 0.317_310_507_862_914_15),
        (&[2.5], drop, less, CORRECTED, 0.977_249_868_051_820_8),
        (&[0.0], drop, two, TABLE, 1.0),
        (&[0.0], pratt, less, TABLE, 0.5),
        (&[0.0], split, greater, CORRECTED, 0.841_344_746_068_542_9),
        (&[1.0, -2.0], drop, greater, SCIPY, 0.75),
        (&[1.0, -2.0], drop, two, NORMAL, 0.654_720_846_018_576_9),
        (&[1.0, -2.0], drop, less, CORRECTED, 0.5),
        (&[0.0, -2.0], pratt, two, SCIPY, 1.0),
        (&[0.0, -2.0], pratt, less, TABLE, 0.25),
        (&[0.0, -2.0], pratt, two, CORRECTED, 0.617_075_077_451_973_8),
        (&[0.0, -2.0], split, two, NORMAL, 0.371_093_369_522_697_56),
        (&[0.0, -2.0], split, less, SCIPY, 0.5),
        (&[3.0; 5], drop, two, SCIPY, 0.0625),
        (&[3.0; 5], pratt, greater, NORMAL, 0.012_673_659_338_734_126),
        (&[3.0; 5], split, two, CORRECTED, 0.036_888_425_707_049_82),
    ];
    for (differences, zeros, alternative, method, p_value) in golden {
        let found = test(differences, zeros, alternative, method);
        assert_relative_eq!(found.p_value, p_value, max_relative = 1e-13);
    }
}

#[test]
fn exact_with_ties_and_zeros_goes_beyond_the_sizes_scipy_enumerates() {
    // 40 differences of one size, 30 of them positive: W+ counts the positive ones, so p is binomial;
    // scipy 1.17.1: binomtest(30, 40).pvalue.
    let mut differences = vec![2.0; 30];
    differences.extend([-2.0; 10]);
    differences.extend([0.0; 9]);
    let expected = 0.002_221_433_773_229_364_3;
    for zeros in [ZeroDifferences::Drop, ZeroDifferences::Pratt, ZeroDifferences::Split] {
        let found = test(&differences, zeros, Alternative::TwoSided, SignedRankMethod::Exact);
        assert_relative_eq!(found.p_value, expected, max_relative = 1e-12);
        assert_eq!((found.n_zero, found.n_tied), (9, 40));
    }
}

#[test]
fn swapping_the_samples_swaps_the_sides() {
    let differences = [1.5, -0.5, 2.0, 2.0, 0.0, -3.0, 1.0];
    let negated = differences.map(|difference| -difference);
    let all = [ZeroDifferences::Drop, ZeroDifferences::Split, ZeroDifferences::Pratt];
    for method in [SignedRankMethod::Exact, TABLE, NORMAL, CORRECTED, SCIPY] {
        // Pratt's rank sums do not add up to those of the untied table, so p depends on the order of the samples.
        for &zeros in if method == TABLE { &all[..2] } else { &all } {
            let greater = test(&differences, zeros, Alternative::Greater, method);
            let less = test(&negated, zeros, Alternative::Less, method);
            assert_eq!(greater.p_value, less.p_value);
            assert_eq!(greater.positive_rank_sum, less.negative_rank_sum);
            assert_eq!(greater.z, less.z.map(|z| -z));
        }
    }
}

#[test]
fn every_rule_takes_the_distribution_it_says() {
    let null =
        |differences: &[f64], method| test(differences, ZeroDifferences::Drop, Alternative::TwoSided, method).null;
    let untied = |n: i32| (1..=n).map(f64::from).collect::<Vec<_>>();
    let with_zero = |n: i32| (0..n).map(f64::from).collect::<Vec<_>>();
    let r = SignedRankMethod::RDefault { continuity_correction: true };
    let r_exact = SignedRankMethod::ExactUnlessTied { continuity_correction: true };
    assert_eq!((null(&untied(50), SCIPY), null(&untied(51), SCIPY)), (SignedRankNull::Exact, SignedRankNull::Normal));
    assert_eq!(
        (null(&with_zero(13), SCIPY), null(&with_zero(14), SCIPY)),
        (SignedRankNull::Exact, SignedRankNull::Normal)
    );
    assert_eq!((null(&untied(49), r), null(&untied(50), r)), (SignedRankNull::Exact, SignedRankNull::NormalCorrected));
    assert_eq!(
        (null(&untied(60), r_exact), null(&with_zero(9), r_exact)),
        (SignedRankNull::Exact, SignedRankNull::NormalCorrected)
    );
    assert_eq!(null(&[1.0, 1.0, 2.0], r_exact), SignedRankNull::NormalCorrected);
}

#[test]
fn without_any_difference_there_is_no_z() {
    for zeros in [ZeroDifferences::Drop, ZeroDifferences::Pratt] {
        let settings = SignedRankSettings { zeros, method: NORMAL, ..SignedRankSettings::default() };
        let error = wilcoxon_of_differences(&[0.0; 8], &settings).unwrap_err();
        assert_eq!(error, MetricError::NoSignedRanks { n: 8 });
        // As R: the correction moves W+ off its mean by infinitely many standard deviations, as these are 0.
        let found = test(&[0.0; 8], zeros, Alternative::Greater, CORRECTED);
        assert_eq!((found.p_value, found.z), (1.0, None));
        assert_eq!(test(&[0.0; 8], zeros, Alternative::TwoSided, SignedRankMethod::Exact).p_value, 1.0);
    }
}

#[test]
fn bad_input_is_refused_by_name() {
    let settings = SignedRankSettings::default();
    assert_eq!(wilcoxon_signed_rank(&[], &[], &settings).unwrap_err(), MetricError::NoSamples);
    let error = wilcoxon_signed_rank(&[1.0], &[1.0, 2.0], &settings).unwrap_err().to_string();
    assert_eq!(error, "number of values of the second sample: 2, expected 1");
    let error = wilcoxon_signed_rank(&[1.0, f64::MAX], &[1.0, -f64::MAX], &settings).unwrap_err().to_string();
    assert_eq!(error, "the paired difference of row 1 is inf, expected a finite number");
    assert!(wilcoxon_of_differences(&[1.0; 1_001], &settings).is_err());
}
