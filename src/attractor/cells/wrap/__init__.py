"""What goes on a cell from outside: normalisers and regularisers."""
