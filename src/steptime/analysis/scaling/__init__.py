"""How speed grows with the number of devices: speed-up, series, fitted laws."""
