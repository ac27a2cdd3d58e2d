"""The pump behind large images: one mail for each command, whatever its images hold."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import pytest
from msgspec import Raw
from PIL import Image

from actors.image_fitter import ImageFitter
from actors.mail import ImagesFitted
from actors.probe import Probe
from protocol.codec import Rejected
from protocol.commands import FollowUp, Prompt, Steer, WithImages
from protocol.messages import ImageContent


def image(width: int) -> ImageContent:
    buffer = BytesIO()
    Image.new("L", (width, 2)).save(buffer, "PNG")
    return ImageContent(base64.b64encode(buffer.getvalue()).decode(), "image/png")


def fitted(command: WithImages) -> Any:
    intake: Probe[Any] = Probe()
    ImageFitter(lambda name, work: work()).start(7, command, intake)
    (mail,) = intake.drain()
    assert isinstance(mail, ImagesFitted) and mail.serial == 7
    return mail.command


@pytest.mark.parametrize("kind", [Prompt, Steer, FollowUp])
def test_only_the_large_images_of_a_command_are_replaced(kind: Any) -> None:
    small, large = image(9), image(4000)
    command = fitted(kind(message="look", images=(small, large), id=Raw(b"1")))
    assert (command.message, bytes(command.id), command.images[0]) == ("look", b"1", small)
    assert Image.open(BytesIO(base64.b64decode(command.images[1].data))).size == (2000, 1)


def test_an_image_that_cannot_be_made_smaller_refuses_the_command_by_its_place() -> None:
    large = image(4000)
    cut = ImageContent(large.data[:48], "image/png")
    command = fitted(Steer(message="look", images=(large, cut), id=Raw(b'"a"')))
    error = 'steer: "images[1]" cannot be used: the image is cut off or damaged'
    assert command == Rejected(b'"a"', "steer", error)
