"""study.toml: one class per section, with defaults, ranges and meaning."""
