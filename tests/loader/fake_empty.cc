// A shared library that is not an engine.
extern "C" int SpexdNothing() { return 0; }
