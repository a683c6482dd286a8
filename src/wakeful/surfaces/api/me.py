"""Who am I to this server: for scripts that check their token, and for pages that show what may be done."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from wakeful.routing.auth import Anyone
from wakeful.routing.problems import answers

router = APIRouter(prefix="/api", tags=["access"])


class Me(BaseModel):
    """The caller as the server knows it."""

    name: str
    role: Literal["viewer", "operator", "admin", "agent"]


@router.get("/me", operation_id="me", responses=answers())
async def me(caller: Anyone) -> Me:
    """The name and role of the token this request carries."""
    return Me.model_validate({"name": caller.name, "role": caller.role})
