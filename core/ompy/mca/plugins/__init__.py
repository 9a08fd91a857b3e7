"""Components that packages offer: how they are found, judged, imported and left out."""
