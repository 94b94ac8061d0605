//! Compiles the C++ shim of the feature `tch`; does nothing without it.

fn main() {
    println!("cargo:rerun-if-changed=src/fast/shim.cpp");
    #[cfg(feature = "tch")]
    shim();
}

#[cfg(feature = "tch")]
fn shim() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-env-changed=LIBTORCH_INCLUDE");
    println!("cargo:rerun-if-env-changed=LIBTORCH_CXX11_ABI");
    // The variables that torch-sys reads, so that both find the same LibTorch.
    let root = ["LIBTORCH_INCLUDE", "LIBTORCH"].into_iter().find_map(|name| std::env::var(name).ok());
    let root = root.expect(
        "LIBTORCH must name the folder of LibTorch 2.9.0 for the feature `tch`; \
         of LIBTORCH_USE_PYTORCH the folder is that of the Python package torch",
    );
    let abi = std::env::var("LIBTORCH_CXX11_ABI").unwrap_or_else(|_| "1".to_owned());
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .define("_GLIBCXX_USE_CXX11_ABI", abi.as_str())
        .include(format!("{root}/include"))
        .file("src/fast/shim.cpp")
        .compile("fairtte_shim");
}
