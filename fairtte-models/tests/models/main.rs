//! Tests of networks and of files of weights, as one program: each further one compiles the networks again.

mod backbones;
mod weight_export;
mod weight_files;
mod weight_layouts;
