"""Deep Zoom by openslide-python, as its example server makes tiles: the peer.

SLIDE=path TILE=240 gunicorn -w 2 -b 127.0.0.1:9200 openslide_app:app
"""
import io
import os

from flask import Flask, make_response
import openslide
from openslide.deepzoom import DeepZoomGenerator

app = Flask(__name__)
zoom = DeepZoomGenerator(openslide.OpenSlide(os.environ["SLIDE"]), tile_size=int(os.environ["TILE"]), overlap=0)


@app.route("/t/<int:level>/<int:col>_<int:row>.jpeg")
def tile(level, col, row):
    body = io.BytesIO()
    zoom.get_tile(level, (col, row)).save(body, "jpeg", quality=75)
    response = make_response(body.getvalue())
    response.mimetype = "image/jpeg"
    return response
