//! Compiles the functions of `LibTorch` that no crate offers, with the feature `tch` alone.

fn main() {
    #[cfg(feature = "tch")]
    foreign::compile();
}

#[cfg(feature = "tch")]
mod foreign {
    use std::env;
    use std::path::PathBuf;

    const SOURCE: &str = "src/fast/aten/foreign.cpp";

    pub(crate) fn compile() {
        for name in ["LIBTORCH", "LIBTORCH_CXX11_ABI"] {
            println!("cargo:rerun-if-env-changed={name}");
        }
        println!("cargo:rerun-if-changed={SOURCE}");
        let abi = env::var("LIBTORCH_CXX11_ABI").unwrap_or_else(|_| "1".to_owned());
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .warnings(false)
            .include(libtorch().join("include"))
            .define("_GLIBCXX_USE_CXX11_ABI", abi.as_str())
            .file(SOURCE)
            .compile("fairtte_aten");
    }

    /// The folder of `LibTorch` that `torch-sys` found.
    fn libtorch() -> PathBuf {
        let found = env::var_os("DEP_TCH_LIBTORCH_LIB").and_then(|lib| Some(PathBuf::from(lib).parent()?.to_owned()));
        let named = || env::var_os("LIBTORCH").map(PathBuf::from);
        found.or_else(named).expect("the folder of LibTorch: torch-sys found none, and LIBTORCH is not set")
    }
}
