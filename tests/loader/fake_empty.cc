// A shared library that is no engine.
extern "C" int SpexdNothing() { return 0; }
