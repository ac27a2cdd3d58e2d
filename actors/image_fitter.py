"""Makes the images of a command smaller in a pump, and tells Intake what became of it."""

from __future__ import annotations

from msgspec.structs import replace

from actors.base import Address, StartPump
from actors.mail import ImagesFitted, IntakeMail
from protocol.codec import Rejected
from protocol.commands import WithImages, command_name


class ImageFitter:
    def __init__(self, start_pump: StartPump) -> None:
        self._start_pump = start_pump

    def start(self, serial: int, command: WithImages, intake: Address[IntakeMail]) -> None:
        self._start_pump("images", lambda: intake.tell(ImagesFitted(serial, _fitted(command))))


def _fitted(command: WithImages) -> WithImages | Rejected:
    from actors.model.image_fit import CannotFit, fitted_content

    images = []
    for index, image in enumerate(command.images):
        try:
            images.append(fitted_content(image))
        except CannotFit as fault:
            return _rejected(command, index, str(fault))
        except Exception as error:  # whatever it is, the command is answered
            return _rejected(command, index, f"it could not be made smaller ({type(error).__name__})")
    return replace(command, images=tuple(images))


def _rejected(command: WithImages, index: int, fault: str) -> Rejected:
    name = command_name(command)
    return Rejected(bytes(command.id), name, f'{name}: "images[{index}]" cannot be used: {fault}')
