"""What every other package stands on: records, settings, ledger and budget, plugins, safe file reading."""
