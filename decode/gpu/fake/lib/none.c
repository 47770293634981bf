// A library that has nothing: others need it.
extern int none;
