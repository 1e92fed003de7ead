"""The machine code of a kernel: the parts that are kept, and how another process links them.

numba's own form (``CompileResult``) also holds LLVM bitcode and annotated source, three quarters of
its bytes. Bitcode is for kernels that call this one. Before numba links anything, it imports
everything that could be compiled: 0.13 s, and 0.25 s where SciPy is installed.

Inner parts of numba are imported here only, and only from the version ``KNOWN``. With any other
version, colmatch uses the public interface. Each process then compiles its kernels, in the thread
that calls them, and no fork waits until they are compiled.
"""

import sys
from typing import Any, NamedTuple

import numba
from numba import types

KNOWN = "0.68"  # the minor version of numba; pyproject.toml requires it or a later one
IS_KNOWN = numba.__version__.startswith(f"{KNOWN}.")
LOCKS: tuple[Any, ...] = ()  # held by a thread that compiles, in the order that numba takes them

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


def describe_type(type: Any) -> str:
    """Describes a type of numba in words, which differ where machine code may differ.

    numba's own words leave out the fields of a NamedTuple. Their order decides which array a kernel
    reads. The class may also be defined in a module that the kernel's module does not import.
    """
    if isinstance(type, types.BaseNamedTuple):
        of = type.instance_class
        parts = (f"{name}={describe_type(part)}" for name, part in zip(type.fields, type.types))
        return f"{of.__module__}.{of.__qualname__}({', '.join(parts)})"
    if isinstance(type, types.BaseTuple):
        return f"({', '.join(map(describe_type, type.types))})"
    return repr(type)


class Code(NamedTuple):
    """The parts of a compiled kernel that are kept. numba can pickle all of them."""

    signature: Any  # numba's, with the type of the result
    library: str  # name of the compiled module
    wrapper: str  # name of the function in it that Python calls
    module: str  # of the kernel's source
    function: str
    environments: tuple[tuple[str, Any], ...]  # name -> globals of the kernel, or of a kernel that it calls
    object: bytes  # ELF, or the system's format


class Linked(NamedTuple):
    """A kernel's code in this process, in the form of a dispatcher's overload."""

    signature: Any
    entry_point: Any  # callable
    library: Any
    environments: tuple[tuple[str, Any], ...]
    objectmode: bool = False


def code_of(compiled: Any) -> Code:
    """Returns the parts of a newly compiled kernel that are kept.

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


def link_code(code: Code) -> Linked:
    """Links code. The calling thread must hold numba's compiler lock."""
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
