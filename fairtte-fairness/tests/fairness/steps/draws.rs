//! The random draws that the worked steps take as recorded inputs, because no definition determines them.

use burn::tensor::{Device, Tensor};
use fairtte_fairness::strategies::Clock;
use fairtte_metrics::seeds::stream;
use fairtte_survival::{HeadConfig, NnetSurvivalConfig};
use rand::seq::SliceRandom as _;
use serde_json::{Value as Json, json};

use super::world::{World, table};

const SEED: u64 = 5;
/// Length of ODR's codes in the worked steps.
const CODE: usize = 3;

fn shuffled(n: usize, seed: u64, name: &str, keys: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut stream(seed, name, keys));
    order
}

/// Standard normal numbers of one pass, row by row.
fn noise(world: &World, name: &str, step: usize, n: usize) -> Vec<Vec<f64>> {
    let clock = Clock::default();
    let like = Tensor::<2>::zeros([n, CODE], &Device::flex());
    let drawn = world.context(step, &clock).noise(name).standard_normal(&like).unwrap();
    let drawn: Vec<f64> = drawn.into_data().iter::<f64>().collect();
    drawn.chunks(CODE).map(<[f64]>::to_vec).collect()
}

fn drawn() -> Json {
    let batches = table().batches;
    let world = World::new(table(), &HeadConfig::NnetSurvival(NnetSurvivalConfig::default()), SEED);
    let of_steps = |draw: &dyn Fn(usize, usize) -> Json| -> Vec<Json> {
        batches.iter().enumerate().map(|(step, rows)| draw(step, rows.len())).collect()
    };
    let halves = of_steps(&|step, n| json!(shuffled(n, SEED, "halves", &[0, step as u64])));
    let [target, sensitive] =
        ["target-code", "sensitive-code"].map(|name| of_steps(&|step, n| json!(noise(&world, name, step, n))));
    let n_train = world.cells().groups.len();
    json!({
        "steps": { "halves": halves, "target-code": target, "sensitive-code": sensitive },
        "batch-norm rows": shuffled(n_train, 0, "swad/batch-norm", &[]),
    })
}

#[test]
fn recorded_draws_are_those_of_the_streams() {
    if let Ok(path) = std::env::var("FAIRTTE_RECORD_DRAWS") {
        std::fs::write(&path, format!("{}\n", drawn())).unwrap();
        println!("recorded {path}");
        return;
    }
    let recorded: Json = super::golden("draws");
    assert_eq!(drawn(), recorded);
}
