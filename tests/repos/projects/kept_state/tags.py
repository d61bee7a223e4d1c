def tagged(name, tags=[]):
    """A name with its tags, sorted."""
    tags.append(name[0])
    return name, sorted(tags)
