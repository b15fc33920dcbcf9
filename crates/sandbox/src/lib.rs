//! Workers in which documents run: processes with walls, a pool of them, deadlines from outside.
