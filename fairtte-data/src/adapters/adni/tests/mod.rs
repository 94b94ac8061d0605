mod fixtures;
mod generated;
mod options;
mod rule;
mod second;
mod tables;
