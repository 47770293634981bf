"""Deep Zoom by openslide-python: gunicorn zoom_app:app, with SLIDE and TILE."""
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
    answer = make_response(body.getvalue())
    answer.mimetype = "image/jpeg"
    return answer
