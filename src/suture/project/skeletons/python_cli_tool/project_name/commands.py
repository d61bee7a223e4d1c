"""The commands of the program: each public function is one."""
