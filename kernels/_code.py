"""The machine code of a kernel: what is kept of it, and how it is linked in another process.

numba's own form (``CompileResult``) has the LLVM bitcode and the annotated source beside the
machine code, three quarters of its bytes. Bitcode is for kernels that call this one. Before numba
links anything it imports all that could be compiled, 0.13 s, and 0.25 where SciPy is installed.

What is used of numba's inner workings is imported here alone, and only from the version ``KNOWN``.
Of any other version, colmatch uses the public interface: kernels are compiled in each process, by
the thread that calls them, and no fork waits until they are.
"""

import sys
from typing import Any, NamedTuple

import numba
from numba import types

KNOWN = "0.68"  # the minor version of numba; pyproject.toml asks for it or a later one
IS_KNOWN = numba.__version__.startswith(f"{KNOWN}.")
LOCKS: tuple[Any, ...] = ()  # that a thread holds while it compiles, in the order in which numba takes them

if IS_KNOWN:
    from llvmlite.binding.ffi import lib as llvm
    from numba import _dynfunc
    from numba.core.compiler_lock import global_compiler_lock as global_compiler_lock
    from numba.core.registry import cpu_target as cpu_target
    from numba.core.serialize import dumps as dumps

    LOCKS = global_compiler_lock._lock, llvm._lock._lock

WHY = (
    f"numba {numba.__version__} is not a version that this colmatch keeps compiled kernels of: "
    f'pip install "numba=={KNOWN}.*" brings one'
)


def described(type: Any) -> str:
    """Returns a type of numba in words, which differ where machine code may differ.

    numba's own words leave out the fields of a NamedTuple. Their order decides which array a kernel
    reads, and the class may stand in a module that the kernel's does not import.
    """
    if isinstance(type, types.BaseNamedTuple):
        of = type.instance_class
        parts = (f"{name}={described(part)}" for name, part in zip(type.fields, type.types))
        return f"{of.__module__}.{of.__qualname__}({', '.join(parts)})"
    if isinstance(type, types.BaseTuple):
        return f"({', '.join(map(described, type.types))})"
    return repr(type)


class Code(NamedTuple):
    """What is kept of a compiled kernel. All of it can be pickled by numba."""

    signature: Any  # numba's, with the type of the result
    library: str  # name of the compiled module
    wrapper: str  # name of the function in it that Python calls
    module: str  # of the kernel's source
    function: str
    environments: tuple[tuple[str, Any], ...]  # globals of the kernel, and of those that it calls, by name
    object: bytes  # ELF, or what the system has


class Linked(NamedTuple):
    """A kernel's code in this process: what a dispatcher has among its overloads."""

    signature: Any
    entry_point: Any  # callable
    library: Any
    environments: tuple[tuple[str, Any], ...]
    objectmode: bool = False


def code_of(compiled: Any) -> Code:
    """Returns what is kept of a kernel that was just compiled.

    compiled : numba's ``CompileResult``
    """
    fndesc, library = compiled.fndesc, compiled.library
    library._ensure_finalized()
    own = cpu_target.target_context.get_env_name(fndesc)
    others = ((env.env_name, env) for env in compiled._find_referenced_environments())
    return Code(
        compiled.signature,
        library.name,
        fndesc.llvm_cpython_wrapper_name,
        fndesc.modname,
        fndesc.qualname,
        ((own, compiled.environment), *((name, env) for name, env in others if name != own)),
        library._get_compiled_object(),
    )


def linked(code: Code) -> Linked:
    """Links code, by a thread that holds numba's compiler lock."""
    library = cpu_target.target_context.codegen().create_library(code.library)
    library.enable_object_caching()
    library._set_compiled_object(code.object)
    library._finalize_final_module()
    engine, codegen = library.codegen._engine, library.codegen
    address = engine.get_function_address(code.wrapper)
    _, own = code.environments[0]
    name = code.function.rpartition(".")[2]
    call = _dynfunc.make_function(sys.modules[code.module], name, "", address, own, (library,))
    for name, environment in code.environments:
        codegen.set_env(name, environment)
    return Linked(code.signature, call, library, code.environments)
