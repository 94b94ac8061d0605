mod bias;
mod file;
