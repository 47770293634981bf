package synth

import "github.com/microtome/microtome/synth/scene"

// likeCoverage leaves about half of the slide bare, as on the slide that Like
// follows.
const likeCoverage = -0.12

// cmuDetail tunes the texture so that the mean tile of each level has the bytes
// of its model: 10.8, 14.1 and 15.2 KB at downsample 1, 4 and 16.
func cmuDetail() []scene.Detail {
	return []scene.Detail{
		{Contrast: 1.3, Grain: 34.3}, {Contrast: 1}, {Contrast: 1.3, Grain: 40.5}, {Contrast: 1}, {Contrast: 1.3, Grain: 45},
	}
}

// cmuTIFFDetail does so for 7.4, 10.5, 11.5, 11.7, 11.5, 11.9, 12.6, 9.4 and 9.6
// KB at downsample 1 to 256.
func cmuTIFFDetail() []scene.Detail {
	return []scene.Detail{
		{Contrast: 1, Grain: 19.9}, {Contrast: 1, Grain: 33.3}, {Contrast: 1, Grain: 44}, {Contrast: 1, Grain: 42.4},
		{Contrast: 1, Grain: 36.7}, {Contrast: 1, Grain: 39.4}, {Contrast: 1, Grain: 31}, {Contrast: 0.95}, {Contrast: 0.4},
	}
}
