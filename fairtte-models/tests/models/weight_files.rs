//! Containers of weights: files that torch wrote, with values that torch printed, and malicious files.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairtte_models::ModelError;
use fairtte_models::weights::{Container, WeightFile};
use proptest::prelude::*;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/weights")
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

fn open(name: &str) -> WeightFile {
    WeightFile::open(&folder().join(name)).unwrap()
}

fn parse(bytes: &[u8]) -> Result<WeightFile, ModelError> {
    WeightFile::parse(Path::new("made.pth"), bytes.to_vec())
}

fn refusal(bytes: &[u8]) -> String {
    parse(bytes).map(|file| format!("{file:?}")).unwrap_err().to_string()
}

/// Reads every tensor, since some errors only appear on reading.
fn read_all(file: &WeightFile) {
    for tensor in file.tensors() {
        if let Ok(values) = file.values(tensor) {
            assert_eq!(values.len(), tensor.n());
        }
    }
}

const TYPES: [&str; 5] =
    ["types.zip.pth", "types.legacy.pth", "types.protocol4.pth", "types.deflated.pth", "types.nocrc.pth"];

#[test]
fn every_type_and_view_has_the_values_that_torch_printed() {
    let expected: Value = serde_json::from_slice(&bytes("types.json")).unwrap();
    let expected = expected["tensors"].as_object().unwrap();
    for name in TYPES {
        let file = open(name);
        assert_eq!(file.tensors().len(), expected.len(), "{name}");
        for tensor in file.tensors() {
            let expected = &expected[&tensor.key];
            let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).unwrap();
            assert_eq!(tensor.shape, shape, "{name} {}", tensor.key);
            let long = match tensor.element.name() {
                "f64" => "float64",
                "f32" => "float32",
                "f16" => "float16",
                "bf16" => "bfloat16",
                "i64" => "int64",
                "i32" => "int32",
                "i16" => "int16",
                "i8" => "int8",
                "u8" => "uint8",
                other => other,
            };
            assert_eq!(Some(long), expected["dtype"].as_str(), "{name} {}", tensor.key);
            let printed = expected["values"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
            let printed: Vec<u32> = printed.map(|text| text.parse::<f32>().unwrap().to_bits()).collect();
            let found: Vec<u32> = file.values(tensor).unwrap().into_iter().map(f32::to_bits).collect();
            assert_eq!(found, printed, "{name} {}", tensor.key);
        }
    }
}

#[test]
fn containers_are_told_by_their_first_bytes() {
    for (name, container) in [
        ("types.zip.pth", Container::ZipPickle),
        ("types.deflated.pth", Container::ZipPickle),
        ("types.legacy.pth", Container::LegacyPickle),
        ("half.legacy.pth", Container::LegacyPickle),
    ] {
        assert_eq!(open(name).container(), container, "{name}");
    }
}

#[test]
fn a_training_checkpoint_shows_its_outermost_keys_and_builds_no_class() {
    for name in ["training.zip.pth", "training.legacy.pth"] {
        let file = open(name);
        let top: BTreeMap<_, _> = file.top().iter().map(|top| (top.key.as_str(), top.content.as_str())).collect();
        assert_eq!(top["model"], "a dictionary of 8");
        assert_eq!(top["optimizer"], "a dictionary of 2");
        assert_eq!(top["epoch"], "12");
        assert_eq!(top["args"], "an object of argparse.Namespace, not built");
        assert_eq!(top["best"], "an object of numpy._core.multiarray.scalar, not built");
        assert_eq!(top["scaler"], "None");
        assert_eq!(top["name"], "\"toy run\"");
        let not_built: Vec<&str> = file.not_built().iter().map(String::as_str).collect();
        assert!(not_built.contains(&"argparse.Namespace"), "{not_built:?}");
        let names: Vec<String> = file.tensors().iter().map(fairtte_models::weights::StoredTensor::name).collect();
        assert_eq!(names[0], "model/0.weight");
        assert!(names.contains(&"optimizer/state/0/exp_avg".to_owned()), "{names:?}");
    }
}

#[test]
fn a_pickled_module_is_named_and_not_built() {
    let file = open("module.zip.pth");
    assert_eq!(file.root(), "an object of torch.nn.modules.container.Sequential, not built");
    assert!(file.tensors().is_empty());
}

#[test]
fn both_containers_of_one_checkpoint_hold_the_same_numbers() {
    let (zip, legacy) = (open("training.zip.pth"), open("training.legacy.pth"));
    assert_eq!(zip.tensors().len(), legacy.tensors().len());
    for (a, b) in zip.tensors().iter().zip(legacy.tensors()) {
        assert_eq!(a.name(), b.name());
        assert_eq!(zip.values(a).unwrap(), legacy.values(b).unwrap(), "{}", a.name());
    }
}

#[test]
fn safetensors_are_read_with_their_metadata() {
    use safetensors::tensor::{Dtype, TensorView};
    let data: Vec<u8> = [1.5_f32, -2.0, 0.25].iter().flat_map(|value| value.to_le_bytes()).collect();
    let half: Vec<u8> = [0x3c00_u16, 0xc000].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let views = [
        ("b.weight", TensorView::new(Dtype::F32, vec![3, 1], &data).unwrap()),
        ("a.half", TensorView::new(Dtype::F16, vec![2], &half).unwrap()),
        ("empty", TensorView::new(Dtype::F32, vec![0, 4], &[]).unwrap()),
    ];
    let metadata = std::collections::HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let bytes = safetensors::serialize(views, Some(metadata)).unwrap();
    let file = parse(&bytes).unwrap();
    assert_eq!(file.container(), Container::Safetensors);
    assert_eq!(file.metadata(), [("format".to_owned(), "pt".to_owned())]);
    let values = |key: &str| {
        let tensor = file.tensors().iter().find(|tensor| tensor.key == key).unwrap();
        file.values(tensor).unwrap()
    };
    assert_eq!(values("b.weight"), [1.5, -2.0, 0.25]);
    assert_eq!(values("a.half"), [1.0, -2.0]);
    assert!(values("empty").is_empty());
    for n in 0..bytes.len() {
        parse(&bytes[..n]).unwrap_err();
    }
}

#[test]
fn what_is_no_weight_file_is_refused_with_what_it_looks_like() {
    let cases: [(&[u8], &str); 7] = [
        (b"", "an empty file"),
        (b"<!doctype html>", "text that begins with <, as a web page does"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"\x1f\x8b\x08", "a gzip file"),
        (b"\x80\x04N.", "a plain pickle of protocol 4"),
        (b"abcd", "bytes 61 62 63 64"),
    ];
    for (bytes, found) in cases {
        let sentence = refusal(bytes);
        assert!(
            sentence.starts_with("made.pth, byte 0: expected safetensors, or what torch.save writes"),
            "{sentence}"
        );
        assert!(sentence.contains(found), "{sentence}");
    }
    let missing = WeightFile::open(Path::new("/no/such/file.pth")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read /no/such/file.pth"), "{missing}");
}

#[test]
fn a_file_cut_at_any_byte_is_refused_with_a_place() {
    for name in ["types.zip.pth", "types.legacy.pth", "types.deflated.pth", "training.legacy.pth", "half.legacy.pth"] {
        let whole = bytes(name);
        for n in 0..whole.len() {
            let sentence = refusal(&whole[..n]);
            assert!(sentence.starts_with("made.pth, byte "), "{name} {n}: {sentence}");
            assert!(sentence.contains(": expected "), "{name} {n}: {sentence}");
        }
    }
}

#[test]
fn a_flipped_bit_gives_a_refusal_or_a_file_that_can_be_read() {
    for name in ["types.zip.pth", "types.legacy.pth", "types.deflated.pth", "training.legacy.pth"] {
        let mut bytes = bytes(name);
        for at in 0..bytes.len() {
            for bit in [0, 3, 7] {
                bytes[at] ^= 1 << bit;
                if let Ok(file) = parse(&bytes) {
                    read_all(&file);
                }
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_the_numbers_in_an_archive_is_noticed() {
    let mut bytes = bytes("types.zip.pth");
    let entry = b"data/0".as_slice();
    let header = bytes.windows(entry.len()).position(|window| window == entry).unwrap();
    // Values 0, 0.125, .. follow the padding of the header.
    let number = 0.125_f32.to_le_bytes();
    let at = header + bytes[header..].windows(4).position(|window| window == number).unwrap();
    bytes[at] ^= 1;
    let sentence = refusal(&bytes);
    assert!(sentence.contains("types.zip/data/0 with checksum"), "{sentence}");
}

/// An archive of empty entries with these names, as Python's zipfile lays it out.
fn archive(names: &[&str]) -> Vec<u8> {
    let (mut bytes, mut table) = (Vec::new(), Vec::new());
    let n = u16::try_from(names.len()).unwrap();
    for name in names {
        let n_name = u16::try_from(name.len()).unwrap();
        let start = u32::try_from(bytes.len()).unwrap();
        let common = [&[20, 0][..], &[0; 20], &n_name.to_le_bytes(), &[0, 0]].concat(); // version to length of extras
        bytes.extend([b"PK\x03\x04", common.as_slice(), name.as_bytes()].concat());
        table
            .extend([b"PK\x01\x02\x14\0", common.as_slice(), &[0; 10], &start.to_le_bytes(), name.as_bytes()].concat());
    }
    let (n_table, start) = (u32::try_from(table.len()).unwrap(), u32::try_from(bytes.len()).unwrap());
    bytes.extend(table);
    let counts = [n.to_le_bytes(), n.to_le_bytes()].concat();
    bytes.extend(
        [b"PK\x05\x06\0\0\0\0", counts.as_slice(), &n_table.to_le_bytes(), &start.to_le_bytes(), &[0, 0]].concat(),
    );
    bytes
}

#[test]
fn an_archive_with_two_pickles_is_refused_with_both_names() {
    let sentence = refusal(&archive(&["a/data.pkl", "b/data.pkl"]));
    assert!(sentence.contains("expected one entry NAME/data.pkl, found a/data.pkl and b/data.pkl"), "{sentence}");
    let sentence = refusal(&archive(&["a/data.pkl", "b/other"]));
    assert!(sentence.contains("expected a pickle") || sentence.contains("an instruction"), "{sentence}");
}

#[test]
fn bytes_after_the_last_storage_of_a_legacy_file_are_refused() {
    let mut bytes = legacy(&tensor(4, 1, &[3], &[1]), &[("0", 4, &[1.0, 2.0, 3.0, 4.0])]);
    let n = bytes.len();
    bytes.extend([0; 7]);
    let expected =
        format!("made.pth, byte {n}: expected the end of the file after the last storage, found 7 more bytes");
    assert_eq!(refusal(&bytes), expected);
}

/// A legacy file around one pickle, with storages of `f32`.
fn legacy(object: &[u8], storages: &[(&str, u64, &[f32])]) -> Vec<u8> {
    let mut bytes = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec();
    bytes.extend(b"\x80\x02M\xe9\x03."); // 1001
    bytes.extend(b"\x80\x02}X\x0d\0\0\0little_endian\x88s.");
    bytes.extend(object);
    bytes.extend(b"\x80\x02](");
    for (key, _, _) in storages {
        bytes.push(b'U');
        bytes.push(u8::try_from(key.len()).unwrap());
        bytes.extend(key.as_bytes());
    }
    bytes.extend(b"e.");
    for (_, n, values) in storages {
        bytes.extend(n.to_le_bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    bytes
}

/// A pickle of `{"w": tensor}` whose storage "0" has `n` elements.
fn tensor(n: i32, offset: i32, shape: &[i32], strides: &[i32]) -> Vec<u8> {
    let integer = |value: &i32| [b"J".as_slice(), &value.to_le_bytes()].concat();
    let tuple = |values: &[i32]| [b"(".as_slice(), &values.iter().flat_map(integer).collect::<Vec<_>>(), b"t"].concat();
    let mut bytes =
        b"\x80\x02}U\x01wctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x010U\x03cpu"
            .to_vec();
    bytes.extend(integer(&n));
    bytes.extend(b"NtQ");
    bytes.extend(integer(&offset));
    bytes.extend(tuple(shape));
    bytes.extend(tuple(strides));
    bytes.extend(b"\x89}tRs.");
    bytes
}

#[test]
fn a_hand_made_file_is_read() {
    let file = parse(&legacy(&tensor(4, 1, &[3], &[1]), &[("0", 4, &[1.0, 2.0, 3.0, 4.0])])).unwrap();
    assert_eq!(file.values(&file.tensors()[0]).unwrap(), [2.0, 3.0, 4.0]);
}

#[test]
fn a_tensor_never_reaches_beyond_its_storage() {
    let data: &[f32] = &[1.0, 2.0, 3.0, 4.0];
    for (n, offset, shape, strides, found) in [
        (4, 2, &[3][..], &[1][..], "leaves its storage of 4 elements"),
        (4, 0, &[2, 2], &[3, 1], "leaves its storage of 4 elements"),
        (4, 0, &[5], &[0], "more elements than the 4 of its storage"),
        (4, 0, &[65_536, 65_536, 65_536, 65_536], &[0, 0, 0, 0], "more elements than can be counted"),
        (4, 0, &[2], &[1, 1], "1 sizes and 2 strides"),
        (4, 0, &[-1], &[1], "a whole number >= 0, found -1"),
        (4, 0, &[2], &[i32::MAX], "leaves its storage of 4 elements"),
        (4, i32::MAX, &[2], &[1], "leaves its storage of 4 elements"),
        (-4, 0, &[2], &[1], "the number of elements of a storage, a whole number >= 0, found -4"),
        (i32::MAX, 0, &[2], &[1], "expected 2147483647 elements of storage 0, found 4"),
        (4, 0, &[1; 17], &[1; 17], "a shape of at most 16 axes, found a tuple of 17"),
    ] {
        let sentence = refusal(&legacy(&tensor(n, offset, shape, strides), &[("0", 4, data)]));
        assert!(sentence.contains(found), "{shape:?}: {sentence}");
    }
}

#[test]
fn what_a_header_announces_is_compared_with_what_is_there() {
    let announced = legacy(&tensor(1 << 30, 0, &[2], &[1]), &[("0", 1 << 30, &[1.0])]);
    let sentence = refusal(&announced);
    assert!(sentence.contains("expected 4294967296 bytes of storage 0, found 4 bytes to the end"), "{sentence}");
    for huge in [
        b"\x80\x02X\xff\xff\xff\xffabc".as_slice(),
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
        b"\x80\x02\x8b\xff\xff\xff\x7f\x01",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let sentence = refusal(&legacy(huge, &[]));
        assert!(sentence.contains("bytes to the end"), "{sentence}");
    }
    let mut zip = bytes("types.deflated.pth"); // torch writes the 64-bit record too, Python's zipfile does not
    let end = zip.len() - 22;
    zip[end + 8..end + 12].fill(0xff);
    let sentence = refusal(&zip);
    assert!(sentence.contains("expected 4 bytes of an entry of the table of contents"), "{sentence}");
}

#[test]
fn a_call_is_named_and_never_made() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("called");
    let command = format!("touch {}", witness.display());
    let calls = [
        format!("\u{80}\u{2}cos\nsystem\n(V{command}\ntR."),
        format!("\u{80}\u{2}(V{command}\nios\nsystem\n."),
        format!("\u{80}\u{2}(cos\nsystem\nV{command}\no."),
        format!("\u{80}\u{2}cos\nsystem\nV{command}\n\u{85}\u{81}."),
        format!("\u{80}\u{2}}}U\u{1}wcposix\nsystem\n(V{command}\ntRs."),
    ];
    for call in calls {
        let object: Vec<u8> = call.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        let file = parse(&legacy(&object, &[])).unwrap();
        assert_eq!(file.not_built().len(), 1, "{call:?}");
        assert!(file.not_built().iter().all(|name| name.ends_with(".system")), "{:?}", file.not_built());
        assert!(!witness.exists());
    }
}

#[test]
fn instructions_out_of_place_are_refused() {
    for (object, expected) in [
        (b"\x80\x02.".as_slice(), "a value on the stack"),
        (b"\x80\x02R.", "a value on the stack"),
        (b"\x80\x02t.", "a mark on the stack"),
        (b"\x80\x02(.", "a value on the stack"),
        (b"\x80\x02h\x05.", "a place of the memo that was filled"),
        (b"\x80\x02}(Nu.", "a value for every key"),
        (b"\x80\x02NNNs.", "a list, set or dictionary to add to"),
        (b"\x80\x09.", "a pickle protocol from 0 to 5"),
        (b"\x80\x02\xf0.", "an instruction of the pickle protocol"),
        (b"\x80\x02\x82\x01.", "an instruction without the extension registry"),
        (b"\x80\x05\x97.", "data inside the pickle"),
        (b"\x80\x02NN\x85R.", "a class or function"),
        (b"\x80\x02cos\nsystem\nNR.", "a tuple of arguments"),
        (b"\x80\x02NQ.", "a persistent id of a storage"),
        (b"\x80\x02P123\n.", "a persistent id of a storage"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", "the arguments of torch._utils._rebuild_tensor_v2"),
        (b"\x80\x02I12x\n.", "an integer of 64 bits"),
        (b"S'\xc3\xa9\n.", "text between two quotes"),
        (b"S'open\n.", "text between two quotes"),
        (b"S'\n.", "text between two quotes"),
        (b"S'mixed\"\n.", "text between two quotes"),
        (b"\x80\x02X\x02\0\0\0\xff\xfe.", "text in UTF-8"),
    ] {
        let sentence = refusal(&legacy(object, &[]));
        assert!(sentence.contains(&format!("expected {expected}")), "{object:?}: {sentence}");
    }
}

#[test]
fn deep_nesting_and_values_that_hold_themselves_cost_no_stack() {
    let lists = [b"\x80\x02".to_vec(), vec![b']'; 200_000], vec![b'a'; 199_999], b".".to_vec()].concat();
    let sentence = refusal(&legacy(&lists, &[]));
    assert!(sentence.contains("dictionaries inside each other"), "{sentence}");
    let tuples = [b"\x80\x02)".to_vec(), vec![0x85; 200_000], b".".to_vec()].concat();
    refusal(&legacy(&tuples, &[]));
    // A list that contains itself, and one whose items double 40 times.
    refusal(&legacy(b"\x80\x02]q\x00h\x00a.", &[]));
    let doubled = [b"\x80\x02]".to_vec(), b"2\x86".repeat(40), b".".to_vec()].concat();
    refusal(&legacy(&doubled, &[]));
}

#[test]
fn a_pickle_cannot_multiply_itself() {
    let long = b"\x80\x02](".iter().copied().chain(vec![b'N'; 100_000]).chain(*b"eq\x00").collect::<Vec<_>>();
    let again = b"ccollections\nOrderedDict\nh\x00\x85R".repeat(100);
    let sentence = refusal(&legacy(&[long, again, b".".to_vec()].concat(), &[]));
    assert!(sentence.contains("a key with its value") || sentence.contains("copies at most"), "{sentence}");
    let name = [b"\x80\x02c".as_slice(), &[b'a'; 2000], b"\nb\n."].concat();
    let sentence = refusal(&legacy(&name, &[]));
    assert!(sentence.contains("the name of a class, at most 1000 bytes"), "{sentence}");

    // Nested dictionaries of two equal values: 2^14 times one tensor under keys of 900 bytes.
    let key = [b"X".as_slice(), &900_u32.to_le_bytes(), &[b'k'; 900]].concat();
    let other = [b"X".as_slice(), &900_u32.to_le_bytes(), &[b'l'; 900]].concat();
    let mut doubling = tensor(4, 0, &[2], &[1]).strip_suffix(b".").unwrap().to_vec();
    doubling.extend([&key, b"q\x01".as_slice(), b"0", &other, b"q\x02", b"0"].concat());
    (0..14).for_each(|_| doubling.extend(b"q\x030}(h\x01h\x03h\x02h\x03u"));
    doubling.push(b'.');
    assert!(doubling.len() < 4096);
    let sentence = refusal(&legacy(&doubling, &[("0", 4, &[1.0; 4])]));
    assert!(sentence.contains("expected at most 67108864 bytes of keys and shapes in all, found more"), "{sentence}");

    // Long outermost keys, each shown with escapes.
    let mut shown = b"\x80\x02".to_vec();
    let long = "\u{7f}".repeat(80);
    shown.extend([b"X".as_slice(), &80_u32.to_le_bytes(), long.as_bytes(), b"q\x010}(".as_slice()].concat());
    shown.extend(b"h\x01h\x01".repeat(200_000));
    shown.extend(b"u.");
    let sentence = refusal(&legacy(&shown, &[]));
    assert!(sentence.contains("bytes of keys and shapes in all"), "{sentence}");

    // A list in place of the class of a module, or of a function.
    let list = [b"\x80\x02](".to_vec(), vec![b'N'; 1000], b"eq\x000".to_vec()].concat();
    let module = [list.as_slice(), b"(U\x06moduleh\x00NNtQ."].concat();
    let sentence = refusal(&legacy(&module, &[]));
    assert!(sentence.contains("expected the class of a module, found a list of 1000"), "{sentence}");
    let called = [list.as_slice(), b"h\x00)R."].concat();
    let sentence = refusal(&legacy(&called, &[]));
    assert!(sentence.contains("expected a class or function, found a list of 1000"), "{sentence}");
    let named = [b"\x80\x02(U\x06modulecmy\nNet\nNNtQ)R.".as_slice()].concat();
    assert!(parse(&legacy(&named, &[])).unwrap().not_built().contains("my.Net"));

    // One byte for each value or mark on the stack.
    for (start, again, expected) in [
        (b"\x80\x02N".as_slice(), b"2".as_slice(), "a stack of at most 4000000 values"),
        (b"\x80\x02Nq\x00", b"h\x00", "a stack of at most 4000000 values"),
        (b"\x80\x02", b"(", "at most 4000000 marks on the stack"),
    ] {
        let sentence = refusal(&legacy(&[start, &again.repeat(4_000_001), b"."].concat(), &[]));
        assert!(sentence.contains(&format!("expected {expected}, found more")), "{sentence}");
    }

    // Names of classes from memoised parts, and tensors from memoised arguments.
    let part = |n: usize| [b"X".as_slice(), &490_u32.to_le_bytes(), format!("{n:490}").as_bytes()].concat();
    let mut crowd = b"\x80\x02".to_vec();
    for n in 0..200_u8 {
        crowd.extend([&part(n.into()), b"q".as_slice(), &[n, b'0']].concat());
    }
    crowd.extend((0..100_u8).flat_map(|a| (100..200_u8).flat_map(move |b| [b'h', a, b'h', b, 0x93, b'0'])));
    crowd.extend(b"N.");
    let sentence = refusal(&legacy(&crowd, &[]));
    assert!(sentence.contains("copies at most 4000000 values"), "{sentence}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_a_file_makes_the_reader_panic(
        which in 0..TYPES.len() + 2,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
        twice in prop::option::of((any::<prop::sample::Index>(), 1_usize..64)),
    ) {
        let names = [&TYPES[..], &["training.legacy.pth", "module.zip.pth"]].concat();
        let mut bytes = bytes(names[which]);
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        if let Some((place, n)) = twice {
            let at = place.index(bytes.len());
            let piece = bytes[at..(at + n).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match parse(&bytes) {
            Ok(file) => read_all(&file),
            Err(error) => prop_assert!(error.to_string().contains("made.pth, byte ")),
        }
    }

    #[test]
    fn no_pickle_makes_the_reader_panic(object in prop::collection::vec(instruction(), 0..60)) {
        let object: Vec<u8> = object.into_iter().flatten().collect();
        if let Ok(file) = parse(&legacy(&object, &[("0", 4, &[1.0, 2.0, 3.0, 4.0])])) {
            read_all(&file);
        }
    }
}

/// Pieces of pickles that are valid together often enough to exercise most of the reader.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop::sample::select(vec![
        b"\x80\x02".to_vec(),
        b"(".to_vec(),
        b"t".to_vec(),
        b"]".to_vec(),
        b"}".to_vec(),
        b")".to_vec(),
        b"Q".to_vec(),
        b"R".to_vec(),
        b"s".to_vec(),
        b"a".to_vec(),
        b"e".to_vec(),
        b"u".to_vec(),
        b"b".to_vec(),
        b"0".to_vec(),
        b"2".to_vec(),
        b"N".to_vec(),
        b"\x85".to_vec(),
        b"\x86".to_vec(),
        b"\x93".to_vec(),
        b"\x94".to_vec(),
        b"h\x00".to_vec(),
        b"q\x00".to_vec(),
        b"K\x02".to_vec(),
        b"ctorch\nFloatStorage\n".to_vec(),
        b"ctorch._utils\n_rebuild_tensor_v2\n".to_vec(),
        b"ccollections\nOrderedDict\n".to_vec(),
        b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x04tQ".to_vec(),
        tensor(4, 0, &[2, 2], &[2, 1])[2..].strip_suffix(b".").unwrap().to_vec(),
    ]);
    let opening = prop::sample::select(vec!["S'", "S\"", "S", "V", "F", "I", "L"]);
    let line = (opening, "[é木\u{301}a0.L]{0,3}", prop::sample::select(vec!["'\n", "\"\n", "\n"]));
    let line = line.prop_map(|(opening, text, end)| format!("{opening}{text}{end}").into_bytes());
    prop_oneof![8 => whole, 1 => line, 1 => prop::collection::vec(any::<u8>(), 1..4)]
}
