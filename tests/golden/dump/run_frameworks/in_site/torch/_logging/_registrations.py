register_artifact("recompiles"); register_artifact("fusion")
