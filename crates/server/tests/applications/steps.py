"""Steps of a scenario: each is told on a line that scripts/applications.sh counts."""


def first_line(error):
    while error.__cause__ is not None:
        error = error.__cause__
    said = [line for line in str(error).splitlines() if line.strip()]
    return said[0].strip() if said else type(error).__name__


def passed(name):
    print(f"ok {name}", flush=True)


def failed(name, why):
    print(f"failed {name}: {why}", flush=True)


def step(name, run, *arguments):
    """Runs one step, tells what came of it, and answers whether it passed."""
    try:
        run(*arguments)
    except Exception as error:  # any error of a driver or framework
        failed(name, first_line(error))
        return False
    passed(name)
    return True


async def step_async(name, run, *arguments):
    """Runs one step that is awaited."""
    try:
        await run(*arguments)
    except Exception as error:  # any error of a driver or framework
        failed(name, first_line(error))
        return False
    passed(name)
    return True
