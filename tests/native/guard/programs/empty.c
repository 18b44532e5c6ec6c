/* A library that does nothing: what every preload costs. */
int empty;
